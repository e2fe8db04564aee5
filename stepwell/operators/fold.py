"""The fold of `operator/<run>`: what is in force of all that operators asked."""

from collections.abc import Sequence

from stepwell.contracts.operators import (
    GateAnswer,
    GateNote,
    Limit,
    LimitNote,
    OpenHold,
    OperatorFold,
    OperatorNote,
    PauseNote,
    SettingNote,
    SkipNote,
    SkippedPrompt,
    StopNote,
)
from stepwell.events import HoldRaised, OperatorActed
from stepwell.events.base import Event
from stepwell.events.operator_acted import Action
from stepwell.recipe.live import check_setting

NOTES: dict[Action, type[OperatorNote]] = {
    "pause": PauseNote,
    "resume": OperatorNote,
    "drain": OperatorNote,
    "stop": StopNote,
    "skip": SkipNote,
    "limit": LimitNote,
    "approve": GateNote,
    "reject": GateNote,
    "set": SettingNote,
}
"""Argument of each action."""


def fold_operators(events: Sequence[Event]) -> OperatorFold:
    """What is in force after the events of the stream."""
    fold = OperatorFold()
    for event in events:
        if isinstance(event, HoldRaised):
            fold = with_hold(fold, event.hold, event.cause)
        elif isinstance(event, OperatorActed):
            fold = applied(fold, event.action, NOTES[event.action](reason=event.reason, **event.arguments))
    return fold


def applied(fold: OperatorFold, action: Action, note: OperatorNote) -> OperatorFold:
    """What is in force after one more request."""
    if action == "drain":
        return fold.model_copy(update={"pause": "drain"})
    if action == "resume":
        return fold.model_copy(update={"pause": None})
    if isinstance(note, PauseNote):
        return fold.model_copy(update={"pause": note.at})
    if isinstance(note, StopNote):
        return fold.model_copy(update={"stop": note.at, "stop_reason": note.reason})
    if isinstance(note, SkipNote):
        skip = SkippedPrompt(step=note.step, prompt=note.prompt, reason=note.reason)
        return fold.model_copy(update={"skips": (*fold.skips, skip)})
    if isinstance(note, LimitNote):
        limits: dict[Limit, float | None] = {**fold.limits, note.limit: note.value}
        return _answered(fold.model_copy(update={"limits": limits}), f"limit/{note.limit}")
    if isinstance(note, GateNote):
        answers = {**fold.answers, note.gate: GateAnswer(approved=action == "approve", reason=note.reason)}
        return _answered(fold.model_copy(update={"answers": answers}), note.gate)
    assert isinstance(note, SettingNote)
    return fold.model_copy(update={"settings": {**fold.settings, note.key: check_setting(note.key, note.value)}})


def with_hold(fold: OperatorFold, hold: str, cause: str) -> OperatorFold:
    """What is in force after the run has begun to wait for an operator."""
    if any(standing.hold == hold for standing in fold.holds):
        return fold
    return fold.model_copy(update={"holds": (*fold.holds, OpenHold(hold=hold, cause=cause))})


def _answered(fold: OperatorFold, hold: str) -> OperatorFold:
    return fold.model_copy(update={"holds": tuple(each for each in fold.holds if each.hold != hold)})
