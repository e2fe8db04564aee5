"""From cases to a finding: what is wrong, weighed; what is not known; else a pass."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from stepwell.ptb.review.criteria import CRITERIA
from stepwell.ptb.review.finding import Evidence, Finding, Standing

BAR = 0.2
"""Share of the score from which a flaw counts (the rubric's)."""
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Case:
    """One thing that a check looked at."""

    where: str
    """Trial, benchmark or key."""
    kind: Literal["fine", "wrong", "unknown", "noted"]
    """Noted: worth telling, and neither wrong nor unknown."""
    says: str
    weight: float
    """Share of all scores that stands on it; what does not belong to a part stands for all, 1."""


def fine(where: str, weight: float, says: str = "") -> Case:
    """A case that is as it should be."""
    return Case(where, "fine", says, weight)


def wrong(where: str, weight: float, says: str) -> Case:
    """A case that is not."""
    return Case(where, "wrong", says, weight)


def unknown(where: str, weight: float, says: str) -> Case:
    """A case of which the record does not say how it is."""
    return Case(where, "unknown", says, weight)


def noted(where: str, says: str) -> Case:
    """Something to tell that decides nothing."""
    return Case(where, "noted", says, 0.0)


def decide(identity: str, looked_at: str, cases: Sequence[Case], *, bar: float = BAR) -> Finding:
    """The finding of a check that decides. It is flagged if what is wrong reaches the bar, unknown if anything is not
    known or nothing was looked at, and else a pass, which tells what is wrong below the bar.

    Args:
        identity: Of the check.
        looked_at: In words.
        cases: All that was looked at; a place that stands in several cases is weighed once.
        bar: Share of the score; 0 flags at anything that is wrong.
    """
    criterion = CRITERIA[identity]
    share = share_of(each for each in cases if each.kind == "wrong")
    is_wrong = any(each.kind == "wrong" for each in cases)
    standing = Standing.PASS
    if is_wrong and share >= bar - _ROUNDING:
        standing = Standing.FLAGGED
    elif not any(each.kind in ("fine", "wrong") for each in cases) or any(each.kind == "unknown" for each in cases):
        standing = Standing.UNKNOWN
    return Finding(
        id=identity,
        group=criterion.group,
        title=criterion.title,
        looked_at=looked_at,
        standing=standing,
        label=standing.value,
        share=share,
        evidence=told(cases),
        would_change=criterion.would_change[standing],
    )


def report(
    identity: str, looked_at: str, label: str, evidence: Sequence[Evidence], share: float | None = None
) -> Finding:
    """The finding of a check that decides nothing."""
    criterion = CRITERIA[identity]
    return Finding(
        id=identity,
        group=criterion.group,
        title=criterion.title,
        looked_at=looked_at,
        standing=Standing.REPORTED,
        label=label,
        share=share,
        evidence=tuple(evidence),
        would_change=criterion.would_change[Standing.REPORTED],
    )


def share_of(cases: Iterable[Case]) -> float:
    """Share of all scores that stands on these, each place once, at most 1."""
    places: dict[str, float] = {}
    for each in cases:
        places[each.where] = max(each.weight, places.get(each.where, 0.0))
    return min(1.0, sum(places.values()))


def told(cases: Iterable[Case]) -> tuple[Evidence, ...]:
    """What the cases say, the wrong ones first, each saying with all places that it is said of."""
    cases = list(cases)
    order: Mapping[str, int] = {"wrong": 0, "unknown": 1, "noted": 2, "fine": 3}
    places: dict[tuple[int, str], list[str]] = {}
    for each in cases:
        if each.says:
            places.setdefault((order[each.kind], _words(each)), []).append(each.where)
    found = [
        Evidence(says=says, where=tuple(dict.fromkeys(where)))
        for (_, says), where in sorted(places.items(), key=lambda one: one[0][0])
    ]
    return (*found, *_in_order(cases))


def _in_order(cases: Sequence[Case]) -> list[Evidence]:
    """How many of the places that were looked at are wholly as they should be."""
    looked_at = {each.where for each in cases if each.kind != "noted"}
    spoilt = {each.where for each in cases if each.kind in ("wrong", "unknown")}
    if not looked_at:
        return []
    return [Evidence(says=f"{len(looked_at - spoilt)} of {len(looked_at)} are as they should be")]


def _words(case: Case) -> str:
    return f"not known: {case.says}" if case.kind == "unknown" else case.says
