"""Run sets as the ledger has them, read with the role that can change nothing."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime

from activities.trial_streams import NoSuchRunSet
from db.blobs import BlobStore
from db.database import Database
from db.ledger import Ledger
from db.objects import ObjectStore
from db.recorded import Recorded
from stepwell.events import RunSetCreated, RunSetFinished, TrialOverridden
from stepwell.events.streams import override_stream, run_set_stream, trial_stream
from stepwell.nearest_names import did_you_mean
from stepwell.ptb.leaderboard.records import Basis, Cell
from stepwell.ptb.trials import RunSetRecipe, resolve_run_set
from stepwell.ptb.trials.fold import Phase, TrialFold, fold_trial
from stepwell.ptb.trials.results import record_of
from stepwell.ptb.trials.review_record import blobs_for_review, trial_record
from workers.services.addresses import Addresses


@dataclass(frozen=True)
class TrialLine:
    """A trial as it is shown."""

    cell: str
    fold: TrialFold | None
    """None of one that has not begun."""
    since: datetime | None
    """Time of its last event, by the database's clock."""
    record: Cell | None
    """What came of it, overrides included."""
    overrides: tuple[TrialOverridden, ...] = ()
    """What persons decided."""

    @property
    def phase(self) -> Phase:
        """What it does."""
        return "waiting" if self.fold is None else self.fold.phase


@dataclass(frozen=True)
class RunSetPicture:
    """A run set as it is shown."""

    name: str
    recipe: RunSetRecipe
    basis: Basis
    trials: tuple[TrialLine, ...]
    """In the order in which they are started."""
    finished: bool

    def counts(self) -> dict[Phase, int]:
        """Trials by what they do."""
        found: dict[Phase, int] = {}
        for trial in self.trials:
            found[trial.phase] = found.get(trial.phase, 0) + 1
        return found

    def results(self) -> list[str]:
        """Lines of a file of results: the basis, and each record that there is."""
        records = [trial.record for trial in self.trials if trial.record is not None]
        return [json.dumps(each.model_dump(mode="json"), sort_keys=True) for each in (self.basis, *records)]


@dataclass
class RunSetReader:
    """Reads run sets; asks only for streams that have grown."""

    ledger: Ledger
    blobs: BlobStore
    _events: dict[str, list[Recorded]] = field(default_factory=dict[str, list[Recorded]])

    async def names(self) -> list[str]:
        """All run sets, the oldest first. Raises DatabaseUnavailable."""
        return [name.removeprefix("run-set/") for name in await self.ledger.streams("run-set/")]

    async def picture(self, name: str) -> RunSetPicture:
        """A run set as it stands.

        Raises:
            NoSuchRunSet: there is none of this name.
            DatabaseUnavailable: no connection.
        """
        await self._refresh(run_set_stream(name))
        recorded = self._events.get(run_set_stream(name), [])
        if not recorded or not isinstance(recorded[0].event, RunSetCreated):
            hint = did_you_mean(name, await self.names())
            raise NoSuchRunSet(f"the ledger has no run set {name!r}" + (f"; {hint}" if hint else ""))
        created = recorded[0].event
        recipe = resolve_run_set(created.recipe, source=f"run set {name}")
        basis = Basis.model_validate(created.basis)
        await self._refresh(f"trial/{name}/")
        await self._refresh(f"override/{name}/")
        return RunSetPicture(
            name,
            recipe,
            basis,
            tuple(self._line(name, cell, recipe, basis.key) for cell in created.cells),
            finished=isinstance(recorded[-1].event, RunSetFinished),
        )

    async def review_lines(self, picture: RunSetPicture) -> list[str]:
        """What is known of each agent's trial that has its record, as lines of a review's record.

        Raises:
            BlobMissing, BlobCorrupt: something is not stored as it was.
        """
        lines: list[str] = []
        for trial in picture.trials:
            if trial.fold is not None and trial.record is not None and trial.record.role == "agent":
                named = blobs_for_review(trial.fold)
                blobs = await self.blobs.get_many(named)
                known = trial_record(picture.name, picture.recipe, picture.basis, trial.fold, blobs, trial.overrides)
                lines.append(known.model_dump_json(exclude_none=True))
        return lines

    def _line(self, run_set: str, cell: str, recipe: RunSetRecipe, basis: str) -> TrialLine:
        recorded = self._events.get(trial_stream(run_set, cell), [])
        if not recorded:
            return TrialLine(cell, None, None, None)
        fold = fold_trial([each.event for each in recorded])
        overrides = [each.event for each in self._events.get(override_stream(run_set, cell), [])]
        decided = [event for event in overrides if isinstance(event, TrialOverridden)]
        record = None if fold.scored is None else record_of(run_set, recipe, basis, fold, decided)
        since = datetime.fromisoformat(recorded[-1].envelope.time)
        return TrialLine(cell, fold, since, record, tuple(decided))

    async def _refresh(self, prefix: str) -> None:
        for stream, head in (await self.ledger.heads(prefix)).items():
            known = self._events.setdefault(stream, [])
            if head.seq >= len(known):
                known += await self.ledger.read(stream, len(known))


@asynccontextmanager
async def run_set_reader(addresses: Addresses, *, wait_s: float = 0.0) -> AsyncGenerator[RunSetReader]:
    """A reader while the block runs.

    Args:
        addresses: Of the services.
        wait_s: How long to wait for a database that is away.
    """
    database, objects = Database(addresses.auditor, pool_size=2, wait_s=wait_s), ObjectStore(addresses.bucket)
    try:
        yield RunSetReader(Ledger(database), BlobStore(database, objects))
    finally:
        await objects.close()
        await database.close()
