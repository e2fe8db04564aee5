"""The control worker: runs the workflows, keeps the ledger's run, prompt and validation streams, projects, and archives
the histories of what closed."""

import asyncio
import logging
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from activities.admission import AdmissionActivities
from activities.groups import GroupActivities
from activities.operators import OperatorActivities
from activities.run import RunActivities
from activities.seals import Sealer
from activities.validation import ValidationActivities
from activities.watch import WatchActivities
from db.database import Database
from db.engines import Engines
from db.errors import BrokenStream, DatabaseUnavailable, DiskFull
from db.projections.projector import Projector
from db.workers import WorkerLeases
from stepwell.events import UnknownEvent
from stepwell.events.envelope import BrokenLink
from stepwell.signing import SigningKeys
from workers.build import build_id, deployment_config, take_over
from workers.history_sweeper import HistorySweeper
from workers.presence import LEASE_S
from workers.runtime import runtime, serve
from workers.services.addresses import Addresses
from workers.services.home import Home
from workflows.contracts import CONTROL_QUEUE
from workflows.registered import WORKFLOWS

PROJECT_EVERY_S = 2.0
KEY_VARIABLE = "STEPWELL_SIGNING_KEY"
"""A file with the private key by which the heads of all runs are signed; without it each run has one of its own, in the
home."""
ACTIVITIES_AT_ONCE = 200
"""Each run under way has one that watches it, besides those that are over at once."""


async def run_control(addresses: Addresses, *, take_over_again: bool = False) -> None:
    """Serves the queue `control` until told to stop.

    Args:
        addresses: of the services.
        take_over_again: whether a build that was superseded decides again (see `workers.build`).

    Raises:
        UnusableKey: the file of `KEY_VARIABLE` holds no signing key.
    """
    build = build_id()
    keys = signing_keys()
    keys.check()
    async with runtime("control", addresses, connections=8, queue=CONTROL_QUEUE) as opened:
        engines, leases = Engines(opened.database), WorkerLeases(opened.database)
        runs = RunActivities(opened.stores, engines, Sealer(opened.stores, keys))
        groups = GroupActivities(opened.stores)
        operators = OperatorActivities(opened.stores, opened.client)
        validations = ValidationActivities(opened.stores)
        watcher = WatchActivities(opened.stores, leases, engines, opened.client, lease_s=LEASE_S)
        readers = Database(addresses.projector, pool_size=1)
        projecting = asyncio.create_task(_project(readers))
        sweeper = HistorySweeper(opened.client, opened.stores)
        sweeping = asyncio.create_task(sweeper.follow())
        sweeping.add_done_callback(_told)
        try:
            await serve(
                opened.client,
                CONTROL_QUEUE,
                [
                    runs.fold_run,
                    runs.dispatch_step,
                    runs.complete_step,
                    runs.replace_prompts,
                    runs.finish_run,
                    runs.list_engines,
                    groups.open_groups,
                    groups.close_groups,
                    AdmissionActivities(opened.stores).admit_step,
                    validations.open_validation,
                    validations.close_validation,
                    operators.record_operator,
                    operators.raise_hold,
                    watcher.watch_run,
                ],
                workflows=WORKFLOWS,
                concurrency=ACTIVITIES_AT_ONCE,
                pollers=4,
                deployment=deployment_config(build),
                polling=partial(take_over, opened.client, build, again=take_over_again),
            )
        finally:
            sweeping.cancel()
            await asyncio.wait([sweeping])
            await sweeper.last_word()
            projecting.cancel()
            await readers.close()


def _told(sweeping: "asyncio.Task[None]") -> None:
    """A run goes on without its histories' archive; why it does is said at once."""
    if not sweeping.cancelled() and (failure := sweeping.exception()) is not None:
        logging.error("no histories are archived any more", exc_info=failure)


def signing_keys(environment: Mapping[str, str] = os.environ) -> SigningKeys:
    """Where this machine has the private keys of runs."""
    given = environment.get(KEY_VARIABLE)
    return SigningKeys(Home.of(None, environment).root / "keys", Path(given) if given else None)


async def _project(readers: Database) -> None:
    """Keeps the tables for reading, also through a database that is away for a while. Facts do not depend on it."""
    while True:
        try:
            await Projector(readers).follow(interval_s=PROJECT_EVERY_S)
        except (DatabaseUnavailable, DiskFull) as error:
            logging.warning("the tables for reading fall behind: %s", error)
            await asyncio.sleep(PROJECT_EVERY_S)
        except (BrokenLink, BrokenStream, UnknownEvent):
            logging.exception("the tables for reading are no longer kept; `stepwell audit verify` names the event")
            return
