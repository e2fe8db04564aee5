"""What operators ask of a run, and what of it is in force."""

from typing import Literal

from pydantic import Field

from stepwell.contracts.base import Contract

Pause = Literal["now", "drain", "step"]
"""How deep a pause goes. `now`: no new turn begins; `drain`: no new rollout begins, those that run go on to their end;
`step`: no new step or validation begins. What was admitted is trained in `drain` and `step`."""
StopAt = Literal["now", "step", "validation"]
"""When a stop takes effect. `now`: open prompts are skipped; `step`: the step under way is finished; `validation`: it
is finished, and the newest version validated. What was admitted is trained in each."""
Limit = Literal["steps", "hours", "gpu_hours", "generated_tokens", "sandbox_minutes"]
"""What can be limited; see `stepwell.recipe.sections.LimitSection`."""


class OperatorNote(Contract):
    """Argument of `resume` and `drain`."""

    reason: str = ""
    """Why; kept in the ledger."""


class PauseNote(OperatorNote):
    """Argument of `pause`."""

    at: Literal["now", "step"] = "now"
    """How deep."""


class StopNote(OperatorNote):
    """Argument of `stop`."""

    at: StopAt = "step"
    """When."""


class SkipNote(OperatorNote):
    """Argument of `skip`."""

    step: int
    """Training step, under way or to come."""
    prompt: int
    """Index of the prompt in the step."""


class LimitNote(OperatorNote):
    """Argument of `limit`."""

    limit: Limit
    """Which."""
    value: float | None
    """The new bound; None: none."""


class GateNote(OperatorNote):
    """Argument of `approve` and `reject`."""

    gate: str
    """Name of a gate that is open, as the run's details show it."""


class SettingNote(OperatorNote):
    """Argument of `set`."""

    key: str
    """A key of the recipe that can be changed in a run (see `stepwell.recipe.live`)."""
    value: float
    """Its new value, from the next step on."""


class OperatorRequest(Contract):
    """Records an operator's action."""

    run: str
    """Run."""
    action: Literal["pause", "resume", "drain", "stop", "skip", "limit", "approve", "reject", "set"]
    """What was asked."""
    arguments: dict[str, str | int | float | bool | None]
    """With what."""
    reason: str
    """As given."""
    update: str
    """Id of the Update, by which its sender is found in the history."""


class HoldRequest(Contract):
    """Records that the run waits for an operator."""

    run: str
    """Run."""
    hold: str
    """Name of the gate or limit (see `stepwell.events.HoldRaised`)."""
    cause: str
    """In words, with the figures."""


class SkippedPrompt(Contract):
    """A prompt that an operator took out."""

    step: int
    """Training step."""
    prompt: int
    """Index in the step."""
    reason: str
    """Why."""


class OpenHold(Contract):
    """What the run waits for an operator for."""

    hold: str
    """Name of the gate or limit."""
    cause: str
    """In words."""


class GateAnswer(Contract):
    """What an operator said to a gate."""

    approved: bool
    """Approved, or rejected."""
    reason: str
    """As given."""


class OperatorFold(Contract):
    """What is in force of all that operators asked."""

    pause: Pause | None = None
    """An operator's pause."""
    stop: StopAt | None = None
    """An operator's stop."""
    stop_reason: str = ""
    """Its reason."""
    skips: tuple[SkippedPrompt, ...] = ()
    """Prompts taken out."""
    limits: dict[Limit, float | None] = Field(default_factory=dict[Limit, float | None])
    """Limits that were moved; the recipe's hold for the others."""
    settings: dict[str, float | int] = Field(default_factory=dict[str, float | int])
    """Keys of the recipe that were set."""
    answers: dict[str, GateAnswer] = Field(default_factory=dict[str, GateAnswer])
    """Gates that were answered."""
    holds: tuple[OpenHold, ...] = ()
    """Gates and limits that wait for an answer, oldest first."""

    @property
    def depth(self) -> Pause | None:
        """The deepest pause in force: a limit that was reached is a pause at once; a stop ends every pause."""
        if self.stop is not None:
            return None
        if any(hold.hold.startswith("limit/") for hold in self.holds):
            return "now"
        return self.pause
