"""What a file of results holds: on what basis scores were made, and one record a cell of a trial."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from stepwell.events.canonical import digest_of_json

Points = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1)]
Status = Literal["clean", "flagged", "failed", "unscored", "missing"]
"""`flagged`: a check found something; `failed`: there is no model that can be scored; `unscored`: its answers could not
all be scored, or a charge not be decided, which is nobody's fault yet; `missing`: there is no record."""


class BrokenResults(ValueError):
    """A file does not hold results, or they contradict each other."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Basis(_Strict):
    """All that two scores must share to be compared. Its digest is the comparability key."""

    kind: Literal["basis"] = "basis"
    regime: Name
    rules: Name
    """Version of the rules that the agents were told."""
    hours: Annotated[float, Field(gt=0)]
    """Of one agent on one cell, in the ranking; other times are ablations."""
    gpus: Annotated[int, Field(ge=0)]
    """Likewise."""
    base_models: Annotated[tuple[Name, ...], Field(min_length=1)]
    weights: Annotated[dict[str, Annotated[float, Field(gt=0)]], Field(min_length=1)]
    """By benchmark; they sum to 1."""
    seeds: tuple[int, ...]
    """Of the passes, where the regime fixes them."""
    data: dict[str, str]
    """Digest of each benchmark's files."""
    scorers: dict[str, str]
    """Version of each benchmark's scorer."""
    templates: dict[str, str]
    """Digest of each base model's chat template."""
    environment: Name
    """Digest or name of the image that evaluations ran in."""
    judge: str | None = None
    """Version of the judge of answers; None if no benchmark needs one."""
    checks: tuple[str, ...] = ()
    """Versions of the checks that every cell was put to."""

    @property
    def key(self) -> str:
        """The comparability key. The order of base models, checks and tables does not matter."""
        fields = self.model_dump(mode="json", exclude={"kind"})
        fields["base_models"] = sorted(self.base_models)
        fields["checks"] = sorted(self.checks)
        return digest_of_json(fields)

    @model_validator(mode="after")
    def _agrees(self) -> "Basis":
        for name, table in (("data", self.data), ("scorers", self.scorers)):
            if table.keys() != self.weights.keys():
                raise ValueError(f"{name} names {sorted(table)} and weights {sorted(self.weights)}: wanted the same")
        if self.templates.keys() != set(self.base_models):
            raise ValueError(f"templates names {sorted(self.templates)}, wanted all of base_models")
        if len(set(self.base_models)) != len(self.base_models):
            raise ValueError(f"a base model stands twice in {self.base_models}")
        if abs(sum(self.weights.values()) - 1) > 1e-9:
            raise ValueError(f"the weights sum to {sum(self.weights.values())!r}: wanted 1")
        return self


class Configuration(_Strict):
    """What was run, all of it: two runs that differ in any of this are never averaged."""

    agent: Name
    """How the row is called."""
    model: Name
    """That the agent's calls went to, as the provider resolved it."""
    scaffold: Name
    scaffold_version: Name
    effort: str | None = None
    """Reasoning effort, if one was set."""
    hours: Annotated[float, Field(gt=0)]
    gpus: Annotated[int, Field(ge=0)]
    tokens: Annotated[int, Field(ge=1)] | None = None
    """Most tokens of a trial; None for no limit."""
    money: Annotated[float, Field(gt=0)] | None = None
    """Most US dollars of a trial; None for no limit."""
    reprompt: bool = False
    """Whether an agent that stopped early was told to go on."""

    @property
    def digest(self) -> str:
        """Of all fields."""
        return digest_of_json(self.model_dump(mode="json"))


class Flag(_Strict):
    """Something that a check found."""

    check: Name
    reason: Name


class Pass(_Strict):
    """One pass over the benchmark."""

    seed: Annotated[int, Field(ge=0)]
    points: Points


class Cell(_Strict):
    """What came of one trial, or of a model that trials are compared with."""

    kind: Literal["cell"] = "cell"
    basis: Name
    """The comparability key; the file has the basis itself too."""
    role: Literal["agent", "base", "instruct", "few_shot"] = "agent"
    """An agent's trial, or a reference: the base model as it is, its publisher's instruct model, or the base model
    asked with examples."""
    configuration: Configuration | None = None
    """Of an agent's trial."""
    run_set: Name
    """Which run over all cells this is part of."""
    trial: Name
    base_model: Name
    """For a reference too: the base model that it stands beside."""
    benchmark: Name
    raw: Points | None
    """Mean of the passes, as scored and whatever was found; None if there is no score."""
    passes: tuple[Pass, ...] = ()
    unscored: Annotated[int, Field(ge=0)] = 0
    """Answers that could not be scored, in all passes."""
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    """Of an answer, in the attempt that gave the score."""
    flags: tuple[Flag, ...] = ()
    undecided: tuple[Name, ...] = ()
    """Charges on which a judge failed and nobody has decided: neither guilt nor innocence."""
    failure: str | None = None
    """Why there is no model that can be scored."""
    ended: Literal["itself", "time", "tokens", "money", "crash"] | None = None
    """What ended the agent."""

    @property
    def status(self) -> Status:
        """What the score stands on."""
        if self.flags:
            return "flagged"
        if self.failure is not None:
            return "failed"
        return "unscored" if self.raw is None or self.undecided else "clean"

    @model_validator(mode="after")
    def _agrees(self) -> "Cell":
        if (self.configuration is None) == (self.role == "agent"):
            raise ValueError("an agent's trial has a configuration, and a reference has none")
        if self.raw is not None and (self.failure is not None or self.unscored):
            raise ValueError("there is a raw score although the trial failed or answers are unscored: wanted null")
        if self.raw is None and self.failure is None and not self.unscored and not self.flags:
            raise ValueError("there is no raw score, and neither a failure nor unscored answers nor a flag say why")
        if self.role != "agent" and self.status != "clean":
            raise ValueError("a reference has a score and no flag, or it is none")
        if self.raw is not None and self.passes:
            mean = sum(one.points for one in self.passes) / len(self.passes)
            if abs(mean - self.raw) > 1e-6:
                raise ValueError(f"the raw score is {self.raw} and the mean of the passes {mean}: wanted the same")
        return self


@dataclass(frozen=True)
class Results:
    """All that was read."""

    bases: dict[str, Basis]
    """By comparability key."""
    cells: tuple[Cell, ...]
