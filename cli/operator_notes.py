"""From the words of a command line to what is asked of a run; what cannot be is refused before anything is sent."""

import argparse
import math
from collections.abc import Iterable
from typing import get_args

from pydantic import ValidationError

from stepwell.contracts.operators import (
    GateNote,
    Limit,
    LimitNote,
    OperatorNote,
    PauseNote,
    SettingNote,
    SkipNote,
    StopNote,
)
from stepwell.nearest_names import did_you_mean
from stepwell.recipe.live import check_setting
from stepwell.recipe.sections import BANDS, LimitSection

LIMITS: tuple[str, ...] = get_args(Limit)
GATES = {
    "publish": "publish/VERSION",
    "validation": "validation/VERSION",
    "band": f"band/METRIC/VERSION with a metric among {', '.join(BANDS)}",
    "smaller": "smaller/STEP",
}
"""Forms of gates by their first word."""


class BadArgument(ValueError):
    """Something that cannot be asked; says what can."""


def note_of(action: str, arguments: argparse.Namespace) -> OperatorNote:
    """The argument of an Update.

    Raises:
        BadArgument: it cannot be made of these words.
    """
    reason: str = arguments.reason
    match action:
        case "pause":
            return PauseNote(reason=reason, at=arguments.at)
        case "stop":
            return StopNote(reason=reason, at=arguments.at)
        case "skip":
            step, prompt = _whole("STEP", arguments.step), _whole("PROMPT", arguments.prompt)
            return SkipNote(reason=reason, step=step, prompt=prompt)
        case "limit":
            return _limit(arguments.assignment, reason)
        case "approve" | "reject":
            return GateNote(reason=reason, gate=_gate(arguments.gate))
        case "set":
            return _setting(arguments.assignment, reason)
        case _:
            return OperatorNote(reason=reason)


def _limit(assignment: str, reason: str) -> LimitNote:
    name, text = _parts(assignment, "NAME=VALUE, for example hours=12 or hours=none")
    if name not in LIMITS:
        raise BadArgument(f"no limit {name!r}: {_offer(name, LIMITS)}there are {', '.join(LIMITS)}")
    value = None if text.lower() == "none" else _number(name, text)
    try:
        LimitSection.model_validate({name: value})
    except ValidationError as error:
        raise BadArgument(f"{name} = {text}: {error.errors()[0]['msg']}, or none to take the limit away") from None
    return LimitNote.model_validate({"reason": reason, "limit": name, "value": value})


def _setting(assignment: str, reason: str) -> SettingNote:
    key, text = _parts(assignment, "KEY=VALUE, for example optimiser.learning_rate=1e-4")
    try:
        return SettingNote(reason=reason, key=key, value=check_setting(key, _number(key, text)))
    except ValueError as error:
        raise BadArgument(str(error)) from None


def _gate(gate: str) -> str:
    kind, _, rest = gate.partition("/")
    if kind == "limit":
        raise BadArgument(f"{gate} is a limit: move it with `stepwell limit RUN {rest or 'NAME'}=VALUE`")
    if kind not in GATES:
        raise BadArgument(f"no gate {gate!r}: {_offer(kind, GATES)}there are {', '.join(GATES.values())}")
    metric, _, number = rest.rpartition("/")
    is_metric = metric in BANDS if kind == "band" else not metric
    if not is_metric or not number.isdecimal():
        offer = _offer(metric, BANDS) if kind == "band" and metric not in BANDS else ""
        raise BadArgument(f"no gate {gate!r}: {offer}wanted {GATES[kind]}")
    return gate


def _parts(assignment: str, wanted: str) -> tuple[str, str]:
    name, equals, text = assignment.partition("=")
    if not equals or not name.strip() or not text.strip():
        raise BadArgument(f"{assignment!r}: wanted {wanted}")
    return name.strip(), text.strip()


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise BadArgument(f"{name} = {text}: wanted a number, as 3600, 0.5 or 1e-4")
    return value


def _whole(name: str, text: str) -> int:
    if not text.isdecimal():
        raise BadArgument(f"{name} is {text!r}: wanted a whole number from 0")
    return int(text)


def _offer(name: str, known: Iterable[str]) -> str:
    """The nearest name there is, as the beginning of a sentence; nothing if none is near."""
    meant = did_you_mean(name, known)
    return f"{meant} " if meant else ""
