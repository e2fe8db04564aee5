"""Reads of a run's ledger what a benchmark log is derived from."""

import asyncio
from collections.abc import Sequence

from cli.reading import Reader, open_reader
from stepwell.events import RunCreated, StepAdmitted, ValidationRecorded
from stepwell.events.streams import run_stream, validation_stream, weights_stream
from stepwell.mlperf.benchmark_log import NotLoggable
from stepwell.mlperf.deriving import RunFacts
from stepwell.rl.batching import BatchManifest
from stepwell.tasks.manifest import TaskManifest
from workers.services.addresses import Addresses, resolve
from workers.services.lifecycle import held


def facts_of(names: Sequence[str]) -> list[RunFacts]:
    """What was recorded of runs.

    Raises:
        NoSuchRun: there is none of one's name.
        NotLoggable: one has no first event.
        DatabaseUnavailable, BlobStoreUnavailable: no answer.
        BlobMissing, BlobCorrupt: the task set or the first batch.
    """
    from db.migrate import check

    resolve()  # says what to do where there never were any services, instead of starting empty ones
    with held() as addresses:
        check(addresses.auditor)
        return asyncio.run(_read(addresses, names))


async def _read(addresses: Addresses, names: Sequence[str]) -> list[RunFacts]:
    async with open_reader(addresses) as reader:
        return [await read_facts(reader, name) for name in names]


async def read_facts(reader: Reader, run: str) -> RunFacts:
    """What was recorded of a run. Raises as `facts_of`."""
    await reader.require(run)
    own = await reader.stream(run_stream(run))
    validated = [each.event for each in own if isinstance(each.event, ValidationRecorded)]
    streams = [weights_stream(run)]
    streams += [validation_stream(run, each.version, each.dataset) for each in validated]
    events = [*own, *[each for stream in streams for each in await reader.stream(stream)]]
    created = next((each.event for each in own if isinstance(each.event, RunCreated)), None)
    if created is None:
        raise NotLoggable(f"run/{run} does not begin with RunCreated: it is no run's ledger")
    admitted = next((each.event for each in own if isinstance(each.event, StepAdmitted)), None)
    tasks = TaskManifest.model_validate_json(await reader.blobs.get(created.task_set))
    batch = None
    if admitted is not None and admitted.manifest:
        batch = BatchManifest.model_validate_json(await reader.blobs.get(admitted.manifest))
    return RunFacts(run=run, events=events, tasks=tasks, first_batch=batch)
