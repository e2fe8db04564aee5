"""Function calls of our own making: rows in the form in which the benchmark's publisher has his, and none of his.

A function is drawn together of a deed, a thing and parameters; the question names each value in one of several ways.
What is learnt is to copy names and values into the form of a call.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

DEEDS = {
    "compute": "Computes",
    "find": "Finds",
    "look_up": "Looks up",
    "estimate": "Estimates",
    "list": "Lists",
    "reserve": "Reserves",
    "convert": "Converts",
    "rank": "Ranks",
    "plan": "Plans",
    "check": "Checks",
}
THINGS = (
    "tank volume", "harvest yield", "ferry timetable", "parcel fee", "roof load", "tide level", "paint demand",
    "bus route", "garden bed", "choir seating", "battery runtime", "letter frequency", "orbit height",
    "bread recipe", "museum ticket", "cable length", "noise level", "library shelf", "wind power", "team roster",
    "river flow", "lamp brightness", "train seat", "soil moisture", "court booking", "ship cargo", "song tempo",
    "bridge toll", "pump pressure", "hive weight",
)  # fmt: skip
NAMES = (
    "Lisbon", "Oslo", "Nairobi", "Quito", "Kyoto", "Bergen", "Tallinn", "Hobart", "Galway", "Porto", "Cusco",
    "Malmö", "Tartu", "amber", "cobalt", "walnut", "granite", "linen", "barley", "saffron", "Rowan Hill",
    "North Quay", "Elm Court", "Blue Heron", "KX-4410", "AB77-2", "Zeta9", "Q-118", "ML-2050", "north wing",
    "early shift", "second floor", "oak door", "green line",
)  # fmt: skip
OPENINGS = (
    "Could you {deed} the {thing} {rest}?",
    "I need you to {deed} the {thing} {rest}.",
    "We are working on something and have to {deed} the {thing} {rest}. What comes out?",
    "Please {deed} the {thing} {rest}.",
    "My colleague asked me to {deed} the {thing} {rest}; can you do that for me?",
    "For a project of ours, {deed} the {thing} {rest}, please.",
)


@dataclass(frozen=True)
class _Parameter:
    name: str
    kind: str
    about: str
    ways: tuple[str, ...]
    """Of saying it; `{v}` is the value, `{p}` a share in per cent."""
    value: Callable[[random.Random], object]


def _whole(low: int, high: int) -> Callable[[random.Random], object]:
    return lambda draws: draws.randint(low, high)


def _share(draws: random.Random) -> object:
    return draws.randint(1, 99) / 100


def _decimal(draws: random.Random) -> object:
    return round(draws.uniform(0.1, 500), draws.choice((1, 2)))


def _name(draws: random.Random) -> object:
    return draws.choice(NAMES)


def _numbers(draws: random.Random) -> object:
    return [draws.randint(1, 90) for _ in range(draws.randint(2, 6))]


def _pairs(draws: random.Random) -> object:
    return [[draws.randint(0, 20), draws.randint(0, 20)] for _ in range(draws.randint(2, 4))]


def _words(draws: random.Random) -> object:
    return draws.sample(NAMES, draws.randint(2, 4))


PARAMETERS = (
    _Parameter("width", "float", "Width in metres.", ("with a width of {v} metres", "that is {v} m wide"), _decimal),
    _Parameter("depth", "float", "Depth in metres.", ("at a depth of {v} metres", "{v} m deep"), _decimal),
    _Parameter(
        "weight", "float", "Weight in kilograms.", ("weighing {v} kg", "with a weight of {v} kilograms"), _decimal
    ),
    _Parameter("pressure", "float", "Pressure in bar.", ("under {v} bar", "at a pressure of {v} bar"), _decimal),
    _Parameter(
        "loss_rate", "float", "Share that is lost.", ("losing {p}% on the way", "with a loss of {p} percent"), _share
    ),
    _Parameter("fill", "float", "Share that is filled.", ("filled to {p}%", "when {p} percent of it is full"), _share),
    _Parameter("count", "integer", "How many.", ("for {v} of them", "counting {v} pieces"), _whole(1, 400)),
    _Parameter("days", "integer", "Number of days.", ("over {v} days", "within the next {v} days"), _whole(1, 90)),
    _Parameter(
        "start_hour", "integer", "Hour of the day.", ("from {v} o'clock", "starting at hour {v}"), _whole(0, 23)
    ),
    _Parameter("people", "integer", "Number of people.", ("for {v} people", "with {v} visitors"), _whole(1, 60)),
    _Parameter(
        "budget", "integer", "Most that it may cost.", ("with {v} to spend", "on a budget of {v}"), _whole(20, 90000)
    ),
    _Parameter("place", "string", "Name of the place.", ("in {v}", "at {v}"), _name),
    _Parameter("label", "string", "Its label.", ("labelled {v}", "that is called {v}"), _name),
    _Parameter("material", "string", "What it is made of.", ("made of {v}", "built from {v}"), _name),
    _Parameter("readings", "array", "The readings.", ("from the readings {v}", "given these readings: {v}"), _numbers),
    _Parameter("sizes", "array", "Sizes in order.", ("of sizes {v}", "for the sizes {v}"), _numbers),
    _Parameter("stops", "array", "Names of the stops.", ("by way of {v}", "that calls at {v}"), _words),
    _Parameter("corners", "array", "Corners as pairs.", ("between the corners {v}", "with corners at {v}"), _pairs),
    _Parameter(
        "urgent",
        "boolean",
        "Whether it is urgent.",
        ("and it is {v} that this is urgent",),
        lambda draws: draws.random() < 0.5,
    ),
)


def call_rows(count: int, seed: int) -> list[dict[str, object]]:
    """Rows of `id`, `question`, `function` and `ground_truth`.

    Args:
        count: How many.
        seed: The same rows for the same.
    """
    draws = random.Random(seed)
    return [_row(draws, number) for number in range(count)]


def _row(draws: random.Random, number: int) -> dict[str, object]:
    deed, thing = draws.choice(sorted(DEEDS)), draws.choice(THINGS)
    chosen = draws.sample(PARAMETERS, draws.choice((1, 1, 2, 2, 3, 4)))
    values = [parameter.value(draws) for parameter in chosen]
    name = f"{deed}_{thing.replace(' ', '_')}"
    said = [_said(draws, parameter, value) for parameter, value in zip(chosen, values, strict=True)]
    rest = said[0] if len(said) == 1 else ", ".join(said[:-1]) + " and " + said[-1]
    opening = draws.choice(OPENINGS)
    question = opening.format(deed=deed.replace("_", " "), thing=thing, rest=rest)
    properties = {each.name: {"type": each.kind, "description": each.about} for each in chosen}
    arguments = ", ".join(f"{each.name}={value!r}" for each, value in zip(chosen, values, strict=True))
    return {
        "id": f"own_{number}",
        "question": [[{"role": "user", "content": question}]],
        "function": [
            {
                "name": name,
                "description": f"{DEEDS[deed]} the {thing}.",
                "parameters": {"type": "dict", "properties": properties, "required": [each.name for each in chosen]},
            }
        ],
        "ground_truth": [f"{name}({arguments})"],
    }


def _said(draws: random.Random, parameter: _Parameter, value: object) -> str:
    shown = ", ".join(map(str, value)) if isinstance(value, list) and draws.random() < 0.3 else str(value)
    per_cent = f"{value * 100:g}" if isinstance(value, float) else ""
    return draws.choice(parameter.ways).format(v=shown.replace("'", ""), p=per_cent)
