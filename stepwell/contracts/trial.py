"""What passes between the workflows of benchmark trials and their activities: names and counts, never payloads."""

from typing import Literal

from stepwell.contracts.base import Contract

Role = Literal["agent", "base", "instruct"]
"""What a trial scores: what an agent leaves, or a reference that it is compared with."""


class TrialPlan(Contract):
    """The part of a run set's recipe that decides what happens next in a trial."""

    hours: float
    """Budget of an agent's work."""
    host_restarts: int
    """How often a trial may start again because its host was lost."""
    attempts: int
    """Attempts at each activity but the agent's, which is taken up until its host is lost."""
    lost_after_s: float
    """A host whose workers take nothing up for this long is lost."""
    evaluation_s: float
    """Deadline of one attempt at the final evaluation."""


class TrialRef(Contract):
    """Names a trial."""

    run_set: str
    """Its run set."""
    cell: str
    """Its name in there."""


class CheckRequest(Contract):
    """A check that is a program, of a trial."""

    run_set: str
    """Its run set."""
    cell: str
    """Its name in there."""
    check: Literal["identity", "contamination"]
    """Which."""


class RestartRequest(Contract):
    """A trial's host was lost."""

    run_set: str
    """Its run set."""
    cell: str
    """Its name in there."""
    epoch: int
    """Number of the start that follows."""
    host: str
    """What was lost; empty if the trial had none yet."""
    cause: str
    """How it was noticed."""


class AbandonRequest(Contract):
    """Infrastructure failed for good."""

    run_set: str
    """Its run set."""
    cell: str
    """Its name in there."""
    cause: str
    """What failed last."""


class TrialStanding(Contract):
    """Where a trial stands, by its stream."""

    role: Role
    """What it scores."""
    epoch: int
    """How often it was started again."""
    host: str
    """Host of this start, whose queue its activities go to; empty if it has none yet."""
    restarts_left: int
    """Starts that are left to it."""
    scored: bool
    """Whether it has its record."""


class Host(Contract):
    """Where an agent will run."""

    host: str
    """What its task queue is named after."""


class TrialInput(Contract):
    """Input of `Trial`. All state but this lies in the ledger: the workflow starts by folding it."""

    run_set: str
    """Its run set."""
    cell: str
    """Its name in there."""
    plan: TrialPlan
    """What to do."""
    notify: str | None
    """Workflow that is told when it is over."""


class TrialOver(Contract):
    """A trial's workflow is over."""

    cell: str
    """Its name in the run set."""
    scored: bool
    """Whether it has its record; else it was abandoned."""


class RunSetPlan(Contract):
    """The part of a run set's recipe that decides what happens next."""

    concurrency: int
    """Trials at once."""
    trials_per_history: int
    """Trials that ended after which the workflow continues as new."""
    trial: TrialPlan
    """Of each trial."""


class RunSetInput(Contract):
    """Input of `RunSet`. All state but this lies in the ledger: the workflow starts by folding it."""

    run_set: str
    """Its name."""
    plan: RunSetPlan
    """What to do."""
    abandoned: tuple[str, ...] = ()
    """Trials that were abandoned since the command started the workflow: they are not tried again before the next."""
    running: tuple[str, ...] = ()
    """Trials that were under way when the workflow continued as new."""


class RunSetRef(Contract):
    """Names a run set."""

    run_set: str
    """Its name."""


class RunSetStanding(Contract):
    """Where a run set stands, by the streams of its trials."""

    open: tuple[str, ...]
    """Trials without a record, in their order."""
    scored: int
    """Trials with one."""
    finished: bool
    """Whether nothing is left to do."""


class RunSetEnd(Contract):
    """How a run set's workflow ended."""

    scored: int
    """Trials with a record."""
    abandoned: tuple[str, ...]
    """Trials without one: the same command takes them up again."""
