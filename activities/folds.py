"""Pure folds of streams: where a run, a group, a rollout stands."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from db.ledger import Recorded
from stepwell.contracts.run import DispatchedStep, RunFold, ValidationScore, VersionRef
from stepwell.events import (
    AttemptOpened,
    RolloutEnded,
    RolloutFailed,
    RolloutGraded,
    RolloutRestarted,
    RowsRecorded,
    RunFinished,
    RunForked,
    StepAdmitted,
    StepCompleted,
    StepDispatched,
    StepTrained,
    TurnRecorded,
    ValidationRecorded,
    VersionCreated,
)
from stepwell.events.base import Event
from stepwell.operators.fold import fold_operators

E = TypeVar("E", bound=Event)


def version_ref(recorded: Recorded) -> VersionRef | None:
    """The weight version that an event of `weights/<run>` made, None for other events."""
    event = recorded.event
    if isinstance(event, VersionCreated | StepTrained):
        return VersionRef(
            version=event.version,
            weights_digest=event.digests.exported,
            seq=recorded.envelope.seq,
            head=recorded.envelope.hash,
            metrics=event.metrics,
        )
    return None


def newest_version(weights: Sequence[Recorded]) -> VersionRef | None:
    """The newest version in `weights/<run>`."""
    versions = [made for made in map(version_ref, weights) if made is not None]
    return max(versions, key=lambda made: made.version, default=None)


def fold_run_streams(run: Sequence[Recorded], operator: Sequence[Recorded], weights: Sequence[Recorded]) -> RunFold:
    """Where a run stands.

    Args:
        run: Its own stream.
        operator: What its operators asked.
        weights: Its weight versions, those of its ancestors included.
    """
    events = [recorded.event for recorded in run]
    fork = next((event for event in events if isinstance(event, RunForked)), None)
    first = 0 if fork is None else fork.step
    finished = [event for event in events if isinstance(event, RunFinished)]
    newest = newest_version(weights)
    completed = first + _count(events, StepCompleted)
    # A version whose completion was not recorded yet does not count: its step is asked for again, and answers at once.
    version = next(
        (made for made in map(version_ref, weights) if made is not None and made.version == completed), newest
    )
    return RunFold(
        version=version,
        completed=completed,
        admitted=first + _count(events, StepAdmitted),
        validations=tuple(
            ValidationScore(
                version=score.version, dataset=score.dataset, pass_1=score.pass_1, pass_k=score.pass_k, k=score.k
            )
            for score in [*([] if fork is None else fork.scores), *_of_type(events, ValidationRecorded)]
        ),
        dispatched=tuple(
            DispatchedStep(step=event.step, version=event.version, settings=event.settings)
            for event in events
            if isinstance(event, StepDispatched) and event.step >= completed
        ),
        operators=fold_operators([recorded.event for recorded in operator]),
        finished=finished[-1].end if finished else None,
        first_step=first,
    )


def _of_type(events: Sequence[Event], kind: type[E]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]


def _count(events: Sequence[Event], kind: type[StepCompleted] | type[StepAdmitted]) -> int:
    """Steps are completed, and admitted, in order: those of a run that is no fork number the next one."""
    return len(_of_type(events, kind))


@dataclass(frozen=True)
class RolloutFold:
    """Where a rollout stands."""

    next_seq: int
    epoch: int
    """How often it was started over."""
    turns: tuple[TurnRecorded, ...]
    """Of this epoch."""
    ended: RolloutEnded | None
    graded: RolloutGraded | None
    failed: RolloutFailed | None
    fruitless: int
    """Attempts in a row, the last ones, that recorded no turn."""
    facts: tuple[Event, ...]
    """All its events."""
    head: str
    """Hash of the last event, empty for a stream that does not exist."""

    @property
    def rows(self) -> RowsRecorded | None:
        """Its rows of tokens, if it has several."""
        return next((event for event in self.facts if isinstance(event, RowsRecorded)), None)

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to play."""
        return self.ended is not None or self.failed is not None


def fold_rollout(stream: Sequence[Recorded]) -> RolloutFold:
    """Where a rollout stands, from its stream."""
    events = tuple(recorded.event for recorded in stream)
    epoch = sum(isinstance(event, RolloutRestarted) for event in events)
    return RolloutFold(
        next_seq=len(stream),
        epoch=epoch,
        turns=tuple(event for event in events if isinstance(event, TurnRecorded) and event.epoch == epoch),
        ended=next((event for event in events if isinstance(event, RolloutEnded)), None),
        graded=next((event for event in events if isinstance(event, RolloutGraded)), None),
        failed=next((event for event in events if isinstance(event, RolloutFailed)), None),
        fruitless=_fruitless(events),
        facts=events,
        head=stream[-1].envelope.hash if stream else "",
    )


def _fruitless(events: Sequence[Event]) -> int:
    count = 0
    for event in events:
        if isinstance(event, AttemptOpened):
            count += 1
        elif isinstance(event, TurnRecorded):
            count = 0
    return count
