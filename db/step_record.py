"""Reads what is recorded of single steps of a run, for a replay. An admitted step no longer changes."""

from collections.abc import Iterable

from db.blobs import BlobStore
from db.errors import BlobCorrupt, BlobMissing
from db.ledger import Ledger
from db.recorded import Recorded
from stepwell.audit.dispatched import AuditedStep, steps_of
from stepwell.audit.recipe import AuditedRecipe
from stepwell.audit.replaying.rows import payloads_of
from stepwell.audit.replaying.step_record import GroupRecord, StepRecord, StreamRead, step_record
from stepwell.events import GroupClosed, RunCreated, StepAdmitted
from stepwell.events.streams import run_stream


class RunSteps:
    """Steps of one run.

    Args:
        ledger: Read alone; the auditor's role is enough.
        blobs: The store of the same services.
        run: Name of the run.
        recorded: Its own stream.
    """

    def __init__(self, ledger: Ledger, blobs: BlobStore, run: str, recorded: Iterable[Recorded]) -> None:
        self._ledger = ledger
        self._blobs = blobs
        self.run = run
        events = [each.event for each in recorded]
        created = next(event for event in events if isinstance(event, RunCreated))
        self.recipe = AuditedRecipe.model_validate(created.recipe)
        self._dispatched = steps_of(run, enumerate(events))
        self._admitted = {event.step: event for event in events if isinstance(event, StepAdmitted)}

    @classmethod
    async def open(cls, ledger: Ledger, blobs: BlobStore, run: str) -> "RunSteps | None":
        """The steps of a run; None if there is none of this name.

        Raises:
            DatabaseUnavailable: no connection.
            pydantic.ValidationError: the sections of its recipe that decide a batch cannot be read.
        """
        recorded = await ledger.read(run_stream(run))
        return cls(ledger, blobs, run, recorded) if recorded else None

    @property
    def admitted(self) -> list[int]:
        """Numbers of the steps whose batch is fixed, ascending."""
        return sorted(self._admitted.keys() & self._dispatched.keys())

    async def read(self, step: int) -> StepRecord:
        """All of a dispatched step.

        Raises:
            KeyError: it was not dispatched.
            DatabaseUnavailable, BlobStoreUnavailable: no answer.
        """
        dispatched, admitted = self._dispatched[step], self._admitted.get(step)
        streams = await self._streams(dispatched)
        batch = None if admitted is None else await self._blob(admitted.manifest)
        return step_record(self.run, dispatched, streams, admitted, batch)

    async def payloads(self, group: GroupRecord) -> dict[str, bytes]:
        """Blobs of the turns that count of a group, by digest; those that are missing or damaged are left out.

        Raises:
            DatabaseUnavailable, BlobStoreUnavailable: no answer.
        """
        wanted = payloads_of(group)
        try:
            return await self._blobs.get_many(wanted)
        except (BlobMissing, BlobCorrupt):
            found = {digest: await self._blob(digest) for digest in wanted}
            return {digest: data for digest, data in found.items() if data is not None}

    async def _streams(self, dispatched: AuditedStep) -> dict[str, StreamRead]:
        scope = dispatched.event.step
        recorded: dict[str, list[Recorded]] = {}
        for kind in ("prompt", "rollout"):
            for each in await self._ledger.read_prefix(f"{kind}/{self.run}/{scope}/"):
                recorded.setdefault(each.stream, []).append(each)
        elsewhere = {
            child.stream
            for stream in recorded.values()
            if isinstance(closed := stream[-1].event, GroupClosed)
            for child in closed.children
        } - recorded.keys()  # those that a fork took over
        recorded |= {name: stream for name, stream in (await self._ledger.read_many(elsewhere)).items() if stream}
        return {
            name: StreamRead([each.event for each in stream], stream[-1].envelope.hash)
            for name, stream in recorded.items()
        }

    async def _blob(self, digest: str) -> bytes | None:
        try:
            return await self._blobs.get(digest)
        except (BlobMissing, BlobCorrupt):
            return None
