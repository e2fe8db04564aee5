"""What operators may ask of a run now, and what is in force of what they asked."""

from collections.abc import Mapping

from stepwell.contracts.operators import (
    GateNote,
    LimitNote,
    OperatorFold,
    OperatorNote,
    Pause,
    PauseNote,
    SettingNote,
    SkipNote,
    StopNote,
)
from stepwell.events.operator_acted import Action
from stepwell.operators.fold import applied, with_hold
from stepwell.recipe.live import check_setting
from workflows.run_state import RunState

DEPTH: Mapping[Pause | None, int] = {None: 0, "step": 1, "drain": 2, "now": 3}
"""Pauses by how much they hold."""
_SOONER = {None: 0, "validation": 1, "step": 2, "now": 3}
"""Stops by how soon they take effect."""
_NEEDS_NO_REASON: frozenset[Action] = frozenset({"resume"})


class OperatorDesk:
    """Says what may be asked (`check`), and keeps what is in force (`apply`), as the ledger's fold would."""

    def __init__(self, state: RunState) -> None:
        self._state = state
        self.fold = OperatorFold()
        self.ready = False
        """Whether the ledger was folded: before it nothing can be refused or granted."""

    def take(self, fold: OperatorFold) -> None:
        """Starts from what the ledger says."""
        self.fold, self.ready = fold, True

    @property
    def depth(self) -> int:
        """How much is held, as in `DEPTH`."""
        return DEPTH[self.fold.depth]

    def skipped(self, step: int) -> dict[int, str]:
        """Prompts of a step that operators took out, with the reasons."""
        return {skip.prompt: skip.reason for skip in self.fold.skips if skip.step == step}

    def hold(self, name: str, cause: str) -> None:
        """A gate or limit waits for an operator from now on."""
        self.fold = with_hold(self.fold, name, cause)

    def apply(self, action: Action, note: OperatorNote) -> None:
        """Puts a request in force."""
        self.fold = applied(self.fold, action, note)

    def check(self, action: Action, note: OperatorNote) -> None:
        """Refuses what cannot be granted.

        Raises:
            ValueError: with the reason, and what to ask instead.
        """
        if action not in _NEEDS_NO_REASON and not note.reason.strip():
            raise ValueError(f"a reason is needed: why {action}? It is kept in the ledger")
        if not self.ready:
            return
        if self._state.end is not None and action != "stop":
            raise ValueError("the run is ending: only a sooner stop can still be asked for")
        if action in ("pause", "drain"):
            self._check_pause(note.at if isinstance(note, PauseNote) else "drain")
        elif action == "resume":
            self._check_resume()
        elif isinstance(note, StopNote):
            self._check_stop(note)
        elif isinstance(note, SkipNote):
            self._check_skip(note)
        elif isinstance(note, LimitNote):
            _check_limit(note)
        elif isinstance(note, GateNote):
            self._check_gate(note)
        elif isinstance(note, SettingNote):
            check_setting(note.key, note.value)

    def _check_pause(self, wanted: Pause) -> None:
        standing = self.fold.pause
        if DEPTH[standing] >= DEPTH[wanted]:
            raise ValueError(f"the run is paused already ({standing}); `resume` ends the pause")

    def _check_resume(self) -> None:
        if self.fold.pause is not None:
            return
        limits = [hold for hold in self.fold.holds if hold.hold.startswith("limit/")]
        if limits:
            name = limits[0].hold.removeprefix("limit/")
            raise ValueError(
                f"{limits[0].cause}: move it with `limit {name}=VALUE`, or take it away with `{name}=none`"
            )
        if self.fold.holds:
            raise ValueError(
                f"the run is not paused; it waits for an answer to {', '.join(hold.hold for hold in self.fold.holds)}: "
                "`approve` or `reject`"
            )
        raise ValueError("the run is not paused")

    def _check_stop(self, note: StopNote) -> None:
        if self._state.end is not None and self.fold.stop is None:
            raise ValueError(f"the run is ending already ({self._state.end.value})")
        if _SOONER[self.fold.stop] >= _SOONER[note.at]:
            raise ValueError(f"the run is stopping already ({self.fold.stop}); only a sooner stop can be asked for")

    def _check_skip(self, note: SkipNote) -> None:
        state = self._state
        if not state.admitted <= note.step < state.max_steps:
            raise ValueError(f"step {note.step} cannot be changed: steps {state.admitted} to {state.max_steps - 1} can")
        prompts = state.prompts_of(note.step)
        if not 0 <= note.prompt < prompts:
            raise ValueError(f"step {note.step} has the prompts 0 to {prompts - 1}, not {note.prompt}")
        if note.prompt in self.skipped(note.step):
            raise ValueError(f"prompt {note.prompt} of step {note.step} is skipped already")
        if state.is_closed(note.step, note.prompt):
            raise ValueError(f"prompt {note.prompt} of step {note.step} has its fate already")

    def _check_gate(self, note: GateNote) -> None:
        if note.gate.startswith("limit/"):
            raise ValueError(f"{note.gate} is a limit: move it with `limit`")
        gates = [hold.hold for hold in self.fold.holds if not hold.hold.startswith("limit/")]
        if note.gate not in gates:
            raise ValueError(f"no gate {note.gate!r} is open; open are: {', '.join(gates) or 'none'}")


def _check_limit(note: LimitNote) -> None:
    if note.value is not None and note.value <= 0:
        raise ValueError(f"limit {note.limit} = {note.value:g}: a limit is above 0, or none")
