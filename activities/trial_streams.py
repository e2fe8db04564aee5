"""The streams of run sets and trials, as their activities read and write them."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from activities.stores import Stores
from stepwell.events import AttemptOpened, RunSetCreated
from stepwell.events.base import Event
from stepwell.events.streams import run_set_stream, trial_stream
from stepwell.ptb.trials.fold import TrialFold, fold_trial
from stepwell.ptb.trials.loading import resolve_run_set
from stepwell.ptb.trials.recipe import RunSetRecipe


class NoSuchRunSet(LookupError):
    """The ledger has no run set of this name."""


class OtherFiles(RuntimeError):
    """A file or folder is not what it was when the run set began."""


@dataclass(frozen=True)
class RunSetFacts:
    """What a run set's first event says."""

    name: str
    recipe: RunSetRecipe
    created: RunSetCreated

    def require(self, what: str, found: str) -> None:
        """Checks that something of this machine is what it was.

        Args:
            what: As the run set's first event names it.
            found: Its digest now.

        Raises:
            OtherFiles: it is another one.
        """
        wanted = self.created.digests[what]
        if found != wanted:
            raise OtherFiles(
                f"{what} has the digest {found[:16]}… now, and had {wanted[:16]}… when run set {self.name} began: "
                "put it back, or begin a new run set"
            )


@dataclass
class TrialStreams:
    """Reads and appends; keeps what never changes."""

    stores: Stores
    _run_sets: dict[str, RunSetFacts] = field(default_factory=dict[str, RunSetFacts])

    async def run_set(self, name: str) -> RunSetFacts:
        """Recipe and first event of a run set.

        Raises:
            NoSuchRunSet: there is none of this name.
        """
        if name not in self._run_sets:
            events = [each.event for each in await self.stores.ledger.read(run_set_stream(name))]
            if not events or not isinstance(events[0], RunSetCreated):
                raise NoSuchRunSet(f"the ledger has no run set {name!r}: `stepwell ptb run` creates run sets")
            recipe = resolve_run_set(events[0].recipe, source=f"run set {name}")
            self._run_sets[name] = RunSetFacts(name, recipe, events[0])
        return self._run_sets[name]

    async def fold(self, run_set: str, cell: str) -> TrialFold:
        """Where a trial stands.

        Raises:
            NoTrial: there is none of this name.
        """
        stream = trial_stream(run_set, cell)
        return fold_trial([each.event for each in await self.stores.ledger.read(stream)])

    async def take(self, run_set: str, cell: str, fold: TrialFold) -> "TrialAttempt":
        """Takes a trial up: whoever held it before can append nothing any more.

        Args:
            run_set: Its run set.
            cell: The trial.
            fold: Where it stood when it was read.

        Raises:
            Fenced: somebody else has appended since.
        """
        attempt = TrialAttempt(self.stores, trial_stream(run_set, cell), fold.next_seq)
        recorded = fold.next_seq
        await attempt.append(
            AttemptOpened(attempt=uuid.uuid4().hex, worker=self.stores.actor, resumed_at=recorded),
        )
        return attempt


@dataclass
class TrialAttempt:
    """An attempt at one activity of a trial: holds its place in the stream."""

    stores: Stores
    stream: str
    next_seq: int

    async def append(self, *events: Event, blobs: Sequence[bytes] = ()) -> None:
        """Appends at the attempt's place.

        Raises:
            Fenced: a later attempt has taken the trial up.
        """
        head = await self.stores.ledger.append(
            self.stream, events, expected_seq=self.next_seq, actor=self.stores.actor, blobs=blobs
        )
        self.next_seq = head.seq + 1
