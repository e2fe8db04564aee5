"""Names of the things of a run that can be explained: `version/12`, `rollout/3/1/0/turn/2/token/5`."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from stepwell.nearest_names import did_you_mean


class NoSuchThing(ValueError):
    """A name that this run has nothing for; says what it has."""


_DIGEST = re.compile(r"[0-9a-f]{64}")


class Ref(NamedTuple):
    """The name of one thing."""

    kind: str
    """What it is, one of `FORMS`."""
    parts: tuple[str, ...] = ()
    """What tells it from others of its kind."""

    def __str__(self) -> str:
        """As `parse` takes it."""
        match self.kind:
            case "attempt" | "turn":
                return "/".join(("rollout", *self.parts[:3], self.kind, self.parts[3]))
            case "token":
                return "/".join(("rollout", *self.parts[:3], "turn", self.parts[3], "token", self.parts[4]))
            case "load":
                return "/".join(("engine", self.parts[0], "load", self.parts[1]))
            case _:
                return "/".join((self.kind, *self.parts))

    @property
    def short(self) -> str:
        """For readers: long digests cut to 12 digits."""
        return _DIGEST.sub(lambda found: found.group()[:12], str(self))


SCOPE = r"(\d+|v\d+-[a-z]+)"
"""A training step, or a validation, as `v24-main`."""
_PLACE = rf"{SCOPE}/(\d+)/(\d+)"
_HEX = r"([0-9a-f]{12,64})"

FORMS: Mapping[str, str] = {
    "run": "run",
    "version": "version/VERSION",
    "step": "step/STEP",
    "batch": "batch/STEP",
    "metric": "metric/STEP/NAME",
    "validation": "validation/VERSION/SET",
    "group": "group/STEP/PROMPT",
    "rollout": "rollout/STEP/PROMPT/SAMPLE[/turn/TURN[/token/TOKEN]]",
    "patch": "patch/STEP/PROMPT/SAMPLE",
    "test": "test/STEP/PROMPT/SAMPLE/ID",
    "verdict": "verdict/KEY",
    "engine": "engine/ID[/load/LOAD]",
    "task": "task/SHA256",
    "operator": "operator/SEQ",
    "blob": "blob/SHA256",
    "event": "event/STREAM/SEQ",
    "end": "end",
}
"""How each kind is written. STEP may be a validation too, as `v24-main`; of a SHA256 or a KEY 12 digits are enough."""

_WRITTEN: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("run", r"run"),
        ("end", r"end"),
        ("version", r"version/(\d+)"),
        ("step", r"step/(\d+)"),
        ("batch", r"batch/(\d+)"),
        ("metric", r"metric/(\d+)/([a-z0-9_]+)"),
        ("validation", r"validation/(\d+)/([a-z]+)"),
        ("group", rf"group/{SCOPE}/(\d+)"),
        ("rollout", rf"rollout/{_PLACE}"),
        ("attempt", rf"rollout/{_PLACE}/attempt/(\d+)"),
        ("turn", rf"rollout/{_PLACE}/turn/(\d+)"),
        ("token", rf"rollout/{_PLACE}/turn/(\d+)/token/(\d+)"),
        ("patch", rf"patch/{_PLACE}"),
        ("test", rf"test/{_PLACE}/(.+)"),
        ("test", rf"test/{_HEX}/(.+)"),
        ("verdict", rf"verdict/{_HEX}"),
        ("engine", r"engine/([^/]+)"),
        ("load", r"engine/([^/]+)/load/(\d+)"),
        ("task", rf"task/{_HEX}"),
        ("operator", r"operator/(\d+)"),
        ("blob", rf"(?:blob|patch)/{_HEX}"),
        ("event", r"event/(.+)/(\d+)"),
    )
)
LAST_SCORE = re.compile(r"pass@(1|k|\d+)")
"""The last validation on the set `main`."""


def parse(text: str) -> Ref:
    """The name that somebody wrote.

    Raises:
        NoSuchThing: it is none; names the forms that there are, the nearest first.
    """
    if LAST_SCORE.fullmatch(text):
        return Ref("last", (text,))
    for kind, pattern in _WRITTEN:
        found = pattern.fullmatch(text)
        if found:
            return Ref(kind, found.groups())
    word = text.partition("/")[0]
    if word in FORMS:
        raise NoSuchThing(f"{text!r} names nothing: wanted {FORMS[word]}")
    meant = did_you_mean(word, [*FORMS, "pass@4"])
    allowed = ", ".join(("pass@K", *FORMS.values()))
    raise NoSuchThing(f"{text!r} names nothing{f' ({meant})' if meant else ''}: wanted one of {allowed}")
