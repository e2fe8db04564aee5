"""Where a trial stands: a fold of its stream. What was recorded before the last start does not count."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from stepwell.contracts.trial import TrialStanding
from stepwell.events.agent_ended import AgentEnded
from stepwell.events.agent_restarted import AgentRestarted
from stepwell.events.agent_started import AgentStarted
from stepwell.events.base import Event
from stepwell.events.check_reached import CheckReached
from stepwell.events.environment_tested import EnvironmentTested
from stepwell.events.judgement_reached import JudgementReached
from stepwell.events.pass_scored import PassScored
from stepwell.events.submission_evaluated import SubmissionEvaluated
from stepwell.events.submission_taken import SubmissionTaken
from stepwell.events.trial_abandoned import TrialAbandoned
from stepwell.events.trial_created import TrialCreated
from stepwell.events.trial_prepared import TrialPrepared
from stepwell.events.trial_scored import TrialScored

Phase = Literal["waiting", "preparing", "working", "checking", "judging", "scoring", "scored", "abandoned"]
"""What a trial does."""

EventT = TypeVar("EventT", bound=Event)


class NoTrial(LookupError):
    """A stream that does not begin as a trial's."""


@dataclass(frozen=True)
class TrialFold:
    """One trial, as its stream has it."""

    created: TrialCreated
    prepared: TrialPrepared | None
    epoch: int
    """How often it was started again."""
    restarts: int
    """Starts again since it was last given up."""
    lost: tuple[str, ...]
    """Why it started again, each time."""
    tested: EnvironmentTested | None
    """Of this start, as all that follow."""
    started: AgentStarted | None
    ended: AgentEnded | None
    submission: SubmissionTaken | None
    checks: tuple[CheckReached, ...]
    judgements: tuple[JudgementReached, ...]
    passes: tuple[PassScored, ...]
    evaluated: SubmissionEvaluated | None
    scored: TrialScored | None
    abandonments: int
    """How often it was given up."""
    is_abandoned: bool
    """Whether nothing happened since."""
    next_seq: int
    """Events that the stream has."""

    @property
    def host(self) -> str:
        """Where its files of this start lie; empty if it has none yet."""
        return self.tested.host if self.tested is not None else ""

    @property
    def prepared_workspace(self) -> str:
        """Digest of what lay in the work folder at the start; empty if nothing has yet."""
        return self.prepared.workspace if self.prepared is not None else ""

    @property
    def phase(self) -> Phase:
        """What it does."""
        if self.scored is not None:
            return "scored"
        if self.is_abandoned:
            return "abandoned"
        if self.next_seq > 1 and (self.created.role != "agent" or self.evaluated is not None or self.passes):
            return "scoring"
        if self.submission is not None and (len(self.checks) == 2 or self.submission.failure):
            return "judging"
        if self.ended is not None:
            return "checking"
        if self.started is not None:
            return "working"
        return "preparing" if self.next_seq > 1 else "waiting"

    def standing(self, host_restarts: int) -> TrialStanding:
        """What a workflow sees of it.

        Args:
            host_restarts: Starts again that the recipe allows.
        """
        return TrialStanding(
            role=self.created.role,
            epoch=self.epoch,
            host=self.host,
            restarts_left=max(0, host_restarts - self.restarts),
            scored=self.scored is not None,
        )


def fold_trial(events: Sequence[Event]) -> TrialFold:
    """Where a trial stands.

    Raises:
        NoTrial: the stream is empty, or begins otherwise.
    """
    if not events or not isinstance(events[0], TrialCreated):
        found = events[0].type if events else "nothing"
        raise NoTrial(f"the stream begins with {found}, a trial's with TrialCreated: `stepwell ptb run` creates trials")
    epoch = sum(isinstance(event, AgentRestarted) for event in events)
    given_up = [at for at, event in enumerate(events) if isinstance(event, TrialAbandoned)]
    since = events[given_up[-1] + 1 :] if given_up else events

    def of_epoch(kind: type[EventT]) -> list[EventT]:
        return [event for event in events if isinstance(event, kind) and getattr(event, "epoch", epoch) == epoch]

    return TrialFold(
        created=events[0],
        prepared=_last(of_epoch(TrialPrepared)),
        epoch=epoch,
        restarts=sum(isinstance(event, AgentRestarted) for event in since),
        lost=tuple(event.cause for event in events if isinstance(event, AgentRestarted)),
        tested=_last(of_epoch(EnvironmentTested)),
        started=_last(of_epoch(AgentStarted)),
        ended=_last(of_epoch(AgentEnded)),
        submission=_last(of_epoch(SubmissionTaken)),
        checks=tuple(of_epoch(CheckReached)),
        judgements=tuple(of_epoch(JudgementReached)),
        passes=tuple(of_epoch(PassScored)),
        evaluated=_last(of_epoch(SubmissionEvaluated)),
        scored=_last(of_epoch(TrialScored)),
        abandonments=len(given_up),
        is_abandoned=bool(given_up) and not since,
        next_seq=len(events),
    )


def _last(events: Sequence[EventT]) -> EventT | None:
    return events[-1] if events else None
