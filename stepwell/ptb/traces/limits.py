"""Limits that a program met, told by what it says of them."""

import re
from collections.abc import Sequence
from functools import cache

from pydantic import BaseModel, ConfigDict, field_validator

from stepwell.ptb.traces.event import LimitKind


class BrokenRule(ValueError):
    """A pattern that cannot be one."""


class LimitRule(BaseModel):
    """What a limit looks like."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: LimitKind
    """Which limit."""
    pattern: str
    """Regular expression; looked for in errors, ends and standard error only, not in what an agent reads or writes."""

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except re.error as error:
            raise BrokenRule(f"{pattern!r} is no regular expression: {error}") from error
        return pattern


def limit_of(text: str, rules: Sequence[LimitRule]) -> LimitKind | None:
    """The limit of the first rule that fits, or None."""
    for rule in rules:
        if _compiled(rule.pattern).search(text):
            return rule.kind
    return None


def limit_of_status(status: int | None) -> LimitKind | None:
    """What an HTTP status says of a limit."""
    if status in (401, 403):
        return "login"
    if status in (500, 502, 503, 529):
        return "overload"
    return {402: "credit", 413: "tokens", 429: "rate"}.get(status or 0)  # pyright: ignore[reportReturnType]


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
