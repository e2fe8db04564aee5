"""What went wrong, and what was taken up again: by kind, and one by one."""

from collections import Counter, defaultdict
from typing import NamedTuple

from stepwell.report.picture import RunPicture
from stepwell.report.tables import listing, moment, table

_ROWS = 200
"""Most of them listed one by one."""
_CAUSE = 120
"""Characters of a cause that a line of the summary quotes."""


class Disturbance(NamedTuple):
    """Something that went wrong, or was taken up again."""

    time_s: float
    """When, in seconds since the epoch."""
    kind: str
    """What, in words that others of its kind share."""
    where: str
    """Its stream, or its part of the run."""
    detail: str
    """In words."""
    lost_s: float | None = None
    """Seconds that it cost, where the ledger tells."""


def disturbances(picture: RunPicture) -> list[Disturbance]:
    """All of them, by time."""
    found = [Disturbance(each.time_s, each.kind, each.stream, each.detail, each.lost_s) for each in picture.recoveries]
    failures = picture.rollouts.failures
    found += [Disturbance(each.time_s, f"rollout failed: {each.failure}", each.stream, each.cause) for each in failures]
    for stall in picture.standing.health.stalls:
        lasted_s = None if stall.ended_s is None else stall.ended_s - stall.began_s
        lasted = "to the end" if lasted_s is None else f"for {lasted_s:.0f} s"
        found.append(
            Disturbance(
                stall.began_s, f"stalled: {stall.what}", stall.what, f"stalled {lasted}: {stall.cause}", lasted_s
            )
        )
    return sorted(found, key=lambda each: each.time_s)


def failures_table(picture: RunPicture) -> str:
    """How often each kind happened, when, what it cost and its most frequent cause."""
    by_kind: dict[str, list[Disturbance]] = defaultdict(list)
    for each in disturbances(picture):
        by_kind[each.kind].append(each)
    if not by_kind:
        return "<p>None: no process was lost, no rollout failed, nothing stalled.</p>"
    rows = [_kind(kind, found) for kind, found in sorted(by_kind.items(), key=lambda item: -len(item[1]))]
    return listing("By kind", ["kind", "count", "first, UTC", "last, UTC", "seconds lost", "main cause"], rows)


def disturbances_table(picture: RunPicture) -> str:
    """Each of them, by time; nothing where there are none."""
    told = [[moment(each.time_s), each.kind, each.where, each.detail] for each in disturbances(picture)]
    more = f"<p>{len(told) - _ROWS} more are in the ledger.</p>" if len(told) > _ROWS else ""
    return listing("", ["time, UTC", "what", "where", "detail"], told[:_ROWS]) + more if told else ""


def ends_table(picture: RunPicture) -> str:
    """How the agents' episodes ended."""
    ends = picture.rollouts.ends
    total = sum(ends.values())
    if not total:
        return ""
    rows = [[reason, f"{count:,}", f"{count / total:.1%}"] for reason, count in ends.most_common()]
    return table("How rollouts ended", ["reason", "rollouts", "share"], rows)


def _kind(kind: str, found: list[Disturbance]) -> list[str]:
    lost = [each.lost_s for each in found if each.lost_s is not None]
    cause, _ = Counter(each.detail for each in found).most_common(1)[0]
    short = cause if len(cause) <= _CAUSE else f"{cause[:_CAUSE]}…"
    cost = f"{sum(lost):,.1f}" if lost else "–"
    return [kind, f"{len(found):,}", moment(found[0].time_s), moment(found[-1].time_s), cost, short]
