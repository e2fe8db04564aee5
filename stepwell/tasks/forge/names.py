"""Names in forged sources, and which split may use which function names."""

import hashlib
from random import Random

from stepwell.tasks.task import Split

VERBS = (
    *("load", "scan", "pick", "calc", "merge", "group", "check", "find", "build", "apply", "score", "rank"),
    *("parse", "fetch", "shift", "split", "clean", "trim", "fold", "make", "take", "get", "put", "run"),
)
NOUNS = (
    *("user", "item", "node", "data", "row", "cost", "page", "file", "task", "size"),
    *("rate", "key", "box", "log", "tag", "bin", "day", "job", "age", "map"),
)
MODULES = ("core", "rules", "shapes", "stats", "parts", "steps", "tools", "model")
ARGUMENTS = {
    "i": ("a", "b", "c", "x", "y", "z", "m", "n"),
    "p": ("n", "m", "p", "q", "w", "h", "r", "t"),
    "x": ("xs", "items", "nums", "rows", "values", "series"),
    "s": ("s", "t", "word", "text", "name", "line"),
}
LOOP_VARIABLES = ("v", "e", "i")
ACCUMULATORS = ("out", "total", "acc")

_SHARES: dict[Split, range] = {
    "train": range(7),
    "validation": range(7, 11),
    "confirm": range(11, 15),
    "heldout_family": range(15, 19),
}


def share_of(text: str) -> int:
    """A number from 0 to 18 that depends on the text alone: which split it belongs to."""
    return hashlib.sha256(text.encode()).digest()[0] % 19


def belongs(text: str, split: Split) -> bool:
    """Whether a text falls in the share of a split; the shares are disjoint."""
    return share_of(text) in _SHARES[split]


def function_names(split: Split, count: int, random: Random) -> list[str]:
    """Distinct function names that no other split uses."""
    names: list[str] = []
    while len(names) < count:
        name = f"{random.choice(VERBS)}_{random.choice(NOUNS)}"
        if name not in names and belongs(name, split):
            names.append(name)
    return names
