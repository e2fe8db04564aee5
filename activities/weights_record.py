"""`weights/<run>` as one attempt of the trainer reads it and adds to it, after what it inherits from its ancestors."""

from collections.abc import Sequence

from activities.folds import version_ref
from activities.stores import Stores
from db.recorded import Recorded
from stepwell.contracts.run import VersionRef
from stepwell.events import CheckpointSaved, RunForked, StepTrained, VersionCreated
from stepwell.events.base import Event
from stepwell.events.streams import weights_stream


class NoVersion(LookupError):
    """The run has no such weight version."""


class WeightsRecord:
    """The stream as it was read, and what this attempt appended since.

    Another attempt that has appended meanwhile fences this one: its next append names a place that is taken.
    """

    def __init__(
        self,
        stores: Stores,
        run: str,
        own: Sequence[Recorded],
        inherited: Sequence[Recorded] = (),
        fork: RunForked | None = None,
    ) -> None:
        self._stores = stores
        self._own = list(own)
        self._inherited = tuple(inherited)
        self.run = run
        self.fork = fork
        """What the run goes on from, if it is a fork."""

    @classmethod
    async def read(cls, stores: Stores, run: str) -> "WeightsRecord":
        """As it stands now.

        Raises:
            NoSuchRun: there is none of this name.
        """
        fork = (await stores.run_facts(run)).fork
        inherited = await stores.inherited_weights(run)
        return cls(stores, run, await stores.ledger.read(weights_stream(run)), inherited, fork)

    @property
    def _recorded(self) -> list[Recorded]:
        return [*self._inherited, *self._own]

    def created(self) -> VersionCreated:
        """How version 0 was made.

        Raises:
            NoVersion: it was not.
        """
        for each in self._recorded:
            if isinstance(each.event, VersionCreated):
                return each.event
        raise NoVersion(f"run {self.run} has no version 0, so no other can be made: create_policy makes it")

    def made(self, version: int) -> VersionCreated | StepTrained:
        """How a version was made.

        Raises:
            NoVersion: it was not.
        """
        for each in self._recorded:
            if isinstance(each.event, VersionCreated | StepTrained) and each.event.version == version:
                return each.event
        raise NoVersion(
            f"run {self.run} has no version {version}: no StepTrained in {weights_stream(self.run)} made it"
        )

    def trained(self, step: int) -> StepTrained:
        """The training of a step.

        Raises:
            NoVersion: it was not trained.
        """
        made = self.made(step + 1)
        assert isinstance(made, StepTrained)
        return made

    def steps(self) -> list[int]:
        """Steps that the run trained itself, ascending."""
        return sorted(each.event.step for each in self._own if isinstance(each.event, StepTrained))

    def version(self, version: int) -> VersionRef | None:
        """A version as workflows know it, None if it was not made."""
        versions = (made for made in map(version_ref, self._recorded) if made is not None)
        return next((made for made in versions if made.version == version), None)

    def checkpoints(self) -> dict[int, str]:
        """Blobs of the run's own complete checkpoints, by version."""
        events = [each.event for each in self._own]
        return {event.version: event.files for event in events if isinstance(event, CheckpointSaved)}

    async def append(self, *events: Event) -> None:
        """Appends at the end, all or none.

        Raises:
            Fenced: another attempt has appended other facts meanwhile.
        """
        stream, next_seq = weights_stream(self.run), len(self._own)
        await self._stores.ledger.append(stream, events, expected_seq=next_seq, actor=self._stores.actor)
        self._own += await self._stores.ledger.read(stream, from_seq=next_seq)
