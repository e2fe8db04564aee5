"""What holds in a trial, whatever its prompt says."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Internet = Literal["none", "allow", "deny", "open"]
"""Nothing is reached; only some hosts; all but some; all."""

RuleCheck = Literal["test_data", "derived_data", "base_model", "evaluation_edits", "distillation", "lookup"]
"""A rule, by what looks for its breach: the contamination check; the charge of the same name; the identity check; the
charges of the same names."""


class Enforced(BaseModel):
    """What is enforced, and what is given."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    internet: Internet
    hosts: tuple[str, ...] = ()
    """Allowed or blocked ones, as the policy names them (`*.example.org`)."""
    hours: Annotated[float, Field(gt=0)]
    """Working time after which the agent is ended."""
    gpus: Annotated[int, Field(ge=0)]
    tokens: Annotated[int, Field(ge=1)] | None = None
    """After which it is ended; None for no limit."""
    money: Annotated[float, Field(gt=0)] | None = None
    """US dollars, likewise."""
    evaluation: Literal["own", "submitted"] = "own"
    """Whether the final evaluation is made with files that the agent never could change, or with those that it left."""
    decontamination: bool = False
    """Whether it has a tool that looks for the benchmark's rows, and those rows."""
    checks: tuple[RuleCheck, ...] = ()
    """Rules whose breach is looked for."""
