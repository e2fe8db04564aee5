"""How use and limits are read from what an agent writes: patterns, declared by its scaffold."""

import re
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

LimitKind = Literal["tokens", "rate", "credit", "overload", "login", "turns", "crash"]
"""The model's context is full or its output cut off; asked too often; the account has no money left; the provider has
no room; it does not know the key; the scaffold's own bound of turns; the scaffold itself fell over."""

TOKEN_GROUPS = frozenset({"input", "output", "cached"})
_GROUPS = TOKEN_GROUPS | {"cost", "id"}


class UsageRule(BaseModel):
    """Reads use from lines."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pattern: str
    """Regular expression, looked for once in each line. Its named groups say what was read: `input`, `output` and
    `cached` in tokens, which exclude one another, `cost` in US dollars, `id` of the message they belong to."""
    counts: Literal["each", "total"]
    """`each`: each match adds, and one with an `id` takes the place of an earlier one with the same. `total`: each
    match takes the place of what was read by this rule since the last prompt."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        groups = set(_compiled(self.pattern).groupindex)
        if not groups <= _GROUPS or not groups & (TOKEN_GROUPS | {"cost"}):
            raise ValueError(
                f"the usage pattern {self.pattern!r} has the named groups {sorted(groups)}: "
                f"wanted some of {sorted(_GROUPS)}, and one that is not `id`"
            )
        return self

    @property
    def reads_tokens(self) -> bool:
        """Whether it reads tokens of any kind."""
        return bool(TOKEN_GROUPS & set(_compiled(self.pattern).groupindex))

    @property
    def reads_cost(self) -> bool:
        """Whether it reads money."""
        return "cost" in _compiled(self.pattern).groupindex


class LimitRule(BaseModel):
    """Recognises a limit in a line. An agent that met one since its last prompt is not told to go on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: LimitKind
    pattern: str
    """Regular expression, looked for in each line of both streams, in what the agent's own commands print too: it
    should fit what only the scaffold says."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        _compiled(self.pattern)
        return self


class Prices(BaseModel):
    """US dollars for a million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
    output: Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
    cached: Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
