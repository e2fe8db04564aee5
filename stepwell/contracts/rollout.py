"""What passes between prompt groups and the sandbox workers."""

from enum import StrEnum
from typing import Literal

from stepwell.contracts.base import Contract
from stepwell.contracts.run import PromptRef
from stepwell.events.group_closed import Fate

Purpose = Literal["train", "validation"]


class FailureKind(StrEnum):
    """Types of the application errors by which a rollout or grading fails."""

    INFRA = "infra"
    """Engine, sandbox, network or host: retried with backoff, never scored."""
    DATA = "data"
    """The task or the prompt is broken: not retried."""
    OPERATOR = "operator"
    """An operator skipped the prompt, or stopped the run."""


class RolloutRequest(Contract):
    """Asks for one rollout."""

    run: str
    """Run."""
    scope: str
    """Scope (see `stepwell.events.streams`)."""
    purpose: Purpose
    """Which sampling settings of the recipe apply."""
    prompt: int
    """Index of the prompt in its scope."""
    sample: int
    """Index of the rollout in its group."""
    task: str
    """Digest of the task."""
    version: int
    """Weight version that must generate every token."""


class RolloutOutcome(Contract):
    """A rollout ended by itself, or was held by a pause."""

    stream: str
    """Its stream."""
    held: bool = False
    """It stands at its last recorded turn, and is to be asked for again when the pause is over."""
    verdict_key: str = ""
    """What its verdict depends on."""
    score: float | None = None
    """Its score, if its tree had been graded before; else None: it waits for grading."""
    generated_tokens: int = 0
    """Tokens generated."""


class GradeRequest(Contract):
    """Asks for the verdict on one tree, for all rollouts of a group that arrived at it."""

    run: str
    """Run."""
    task: str
    """Digest of the task."""
    verdict_key: str
    """What is graded."""
    streams: tuple[str, ...]
    """Rollouts that wait for it; each gets its `RolloutGraded`."""


class GradeOutcome(Contract):
    """The verdict."""

    verdict_key: str
    """What was graded."""
    score: float
    """1.0 or 0.0."""


class RolloutFailure(Contract):
    """A rollout without a score."""

    stream: str
    """Its stream."""
    kind: FailureKind
    """Whose fault."""
    cause: str
    """In words."""


class FailRolloutsRequest(Contract):
    """Records rollouts that have no score and get none."""

    run: str
    """Run."""
    failures: tuple[RolloutFailure, ...]
    """Which, and why."""


class GroupInput(Contract):
    """Input of `PromptGroup` and, with several prompts, of `ValidationShard`."""

    run: str
    """Run."""
    scope: str
    """Scope."""
    purpose: Purpose
    """Which sampling settings apply."""
    version: int
    """Weight version."""
    prompts: tuple[PromptRef, ...]
    """The prompts."""
    samples: int
    """Rollouts a prompt."""
    rollout_timeout_s: float
    """Deadline of one attempt at a rollout."""
    rollout_attempts: int
    """Attempts at a rollout."""
    timeout_s: float
    """Longest that the prompts may be open, pauses left out."""
    skipped: str = ""
    """An operator's reason to skip the prompts before they began; empty: they are not skipped."""
    notify: str | None
    """Id of the workflow that is told when the prompts are closed, if any."""


class OpenGroupsRequest(Contract):
    """Opens the streams of prompts."""

    run: str
    """Run."""
    scope: str
    """Scope."""
    version: int
    """Weight version."""
    prompts: tuple[PromptRef, ...]
    """The prompts."""
    samples: int
    """Rollouts a prompt."""


class CloseGroupsRequest(Contract):
    """Closes the streams of prompts, with a fate each."""

    run: str
    """Run."""
    scope: str
    """Scope."""
    purpose: Purpose
    """Decides the good fate: trained or validated."""
    prompts: tuple[PromptRef, ...]
    """The prompts."""
    samples: int
    """Rollouts a prompt."""
    skipped: str = ""
    """An operator's reason, if the prompts were skipped; their fate is then that, whatever the scores."""


class GroupFate(Contract):
    """How a prompt's group ended."""

    prompt: int
    """Index of the prompt."""
    fate: Fate
    """What became of it."""
    reward_mean: float | None
    """Mean score of its graded rollouts."""


class GroupsClosed(Contract):
    """What `PromptGroup` tells the run's workflow."""

    scope: str
    """Scope."""
    groups: tuple[GroupFate, ...]
    """One a prompt."""
