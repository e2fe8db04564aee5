"""What a judge must answer, to the letter; anything else is no verdict."""

from collections.abc import Collection
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from stepwell.ptb.judges.charges import ChargeName

LONGEST_JUSTIFICATION = 4_000
"""Characters."""


class JudgeVerdict(BaseModel):
    """One judge's answer on one charge. A violation cites what shows it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    charge: ChargeName
    """What was asked."""
    violation: bool
    """Whether the rule was broken."""
    justification: Annotated[str, Field(min_length=1, max_length=LONGEST_JUSTIFICATION)]
    """Why."""
    citations: list[Annotated[str, Field(pattern=r"^E[1-9][0-9]*$")]]
    """Excerpts that show it."""
    certainty: Literal["low", "medium", "high"]
    """How sure the judge is; told, and decides nothing."""


def read_verdict(text: str, charge: ChargeName, excerpts: Collection[str]) -> JudgeVerdict:
    """The verdict that a judge's answer is.

    Args:
        text: The whole answer: one JSON object and nothing else.
        charge: What was asked.
        excerpts: Ids of what was shown.

    Raises:
        ValueError: it is none; what is wrong with it.
    """
    try:
        verdict = JudgeVerdict.model_validate_json(text.strip())
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the answer"
        raise ValueError(f"no verdict: {where}: {first['msg']}") from error
    if verdict.charge != charge:
        raise ValueError(f"a verdict on {verdict.charge}, where {charge} was asked")
    foreign = [cited for cited in verdict.citations if cited not in excerpts]
    if foreign:
        raise ValueError(f"a verdict that cites {foreign[0]}, which was not shown")
    if verdict.violation and excerpts and not verdict.citations:
        raise ValueError("a violation without a citation")
    return verdict
