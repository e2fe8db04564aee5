"""What a regime says, read from its TOML file."""

import math
import tomllib
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from stepwell.nearest_names import did_you_mean

REGIMES = ("v1.0", "v1.1", "v1.2")
"""Those that travel with this package."""

Check = Literal["contamination", "model", "api", "lookup"]
Positive = Annotated[int, Field(ge=1)]


class BrokenRegime(ValueError):
    """A file holds no regime, or there is none of that name."""


class Regime(BaseModel):
    """One set of rules."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    since: str
    """Year and month from which it held."""
    rules: str
    """Version of the rules that the agent is told."""
    base_models: Annotated[tuple[str, ...], Field(min_length=1)]
    hours: Annotated[float, Field(gt=0)]
    """Of one agent on one cell."""
    seeds: tuple[Annotated[int, Field(ge=0)], ...]
    """Of the passes over a benchmark; none if the regime fixes none: then there is one pass."""
    judge_seeds: Positive
    """Passes over a benchmark that a judge scores, at most: it pays for each."""
    judge: str
    judge_effort: str
    checks: tuple[Check, ...]
    """What a submission is judged for; each that finds something costs the cell its score."""
    votes: Positive
    """Judgements of each check."""
    max_tokens: dict[str, Annotated[tuple[Positive, ...], Field(min_length=1)]]
    """By benchmark, of one answer: the first, and those that are tried where an evaluation failed."""
    weights: dict[str, Annotated[float, Field(gt=0, lt=1)]]
    """By benchmark; they sum to 1."""

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """Names, sorted."""
        return tuple(sorted(self.weights))

    @model_validator(mode="after")
    def _agrees(self) -> "Regime":
        if self.max_tokens.keys() != self.weights.keys():
            raise ValueError(
                f"max_tokens names {sorted(self.max_tokens)} and weights {sorted(self.weights)}: wanted the same"
            )
        total = math.fsum(self.weights.values())
        if abs(total - 1) > 1e-9:
            raise ValueError(f"the weights sum to {total!r}: wanted 1")
        if len(set(self.seeds)) != len(self.seeds):
            raise ValueError(f"a seed stands twice in {self.seeds}")
        return self

    def seeds_of(self, benchmark: str, own: int, *, judged: bool) -> tuple[int, ...]:
        """Seeds of the passes over a benchmark.

        Args:
            benchmark: One of `benchmarks`.
            own: The trial's, for a regime that fixes none.
            judged: Whether a judge scores the benchmark.

        Raises:
            BrokenRegime: the regime has no such benchmark.
        """
        if benchmark not in self.weights:
            raise BrokenRegime(f"{self.name} has no benchmark {benchmark!r}; it has {', '.join(self.benchmarks)}")
        seeds = self.seeds or (own,)
        return seeds[: self.judge_seeds] if judged else seeds


@cache
def regime(name: str) -> Regime:
    """The regime of that name.

    Raises:
        BrokenRegime: there is none.
    """
    if name not in REGIMES:
        hint = did_you_mean(name, REGIMES)
        raise BrokenRegime(f"no regime {name!r}; there are {', '.join(REGIMES)}" + (f"; {hint}" if hint else ""))
    return load_regime(Path(__file__).with_name(f"{name}.toml"))


def load_regime(path: Path) -> Regime:
    """The regime of a file: for a rehearsal on other models and benchmarks.

    Raises:
        BrokenRegime: the file cannot be read, or says something that no regime says.
    """
    try:
        return Regime.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BrokenRegime(f"{path} cannot be read as TOML: {error}") from error
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors(include_url=False)]
        raise BrokenRegime("\n  ".join([f"{path} is no regime:", *lines])) from error
