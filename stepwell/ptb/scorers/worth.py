"""What one answer is worth."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scored:
    """Worth of one answer."""

    value: float | None
    """0 to 1, or below 0 where a rubric takes points; None if it could not be found out, which is not 0."""
    why: str
    """The reason, in words."""
    weight: float = 1.0
    """Votes in the benchmark's mean."""
    orders_agree: bool | None = None
    """For a pair that was judged in both orders: whether the same answer was preferred, or none, in both."""


def unscored(why: str) -> Scored:
    """Not found out: of a judge that erred, or said nothing that can be read."""
    return Scored(None, why)
