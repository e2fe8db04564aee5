"""Rollouts by worker as a drawing: a lane a worker, as high as the number of its rollouts under way.

Time is cut into stretches, so the drawing of ten rollouts is as large as that of a million: at most some 50 KB.
"""

from html import escape

from stepwell.report.picture import RunPicture
from stepwell.report.worker_timeline import Lane

LANES = 16
"""Most workers with a lane of their own; the others share the last."""
_WIDTH, _LANE, _LEFT, _RIGHT = 960, 40, 150, 120
_BINS = 320
"""Stretches of time."""
_MARKS = 40
"""Most marks of a lane."""
_NAME = 20
"""Characters of a worker's name that fit beside its lane."""


def worker_figure(picture: RunPicture) -> str:
    """Lanes over the reinforcement part, as HTML; says so where no rollout has begun."""
    split, began_s = picture.time_split(), picture.reinforcement_began_s
    lanes = picture.worker_lanes()
    if split is None or began_s is None or split.wall_s <= 0 or not lanes:
        return "<p>No rollout has begun.</p>"
    shown = _merged(lanes)
    heights = [lane.under_way(began_s, split.wall_s, _BINS) for lane in shown]
    most = max(max(height) for height in heights) or 1.0
    drawn = "".join(
        _lane(number, lane, height, most, began_s, split.wall_s)
        for number, (lane, height) in enumerate(zip(shown, heights, strict=True))
    )
    height = len(shown) * _LANE + 28
    words = "; ".join(_words(lane, max(high)) for lane, high in zip(shown, heights, strict=True))
    return (
        f'<div class="wide"><svg class="lanes workers" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-labelledby="workers-title workers-text"><title id="workers-title">Rollouts under way by worker</title>'
        f'<desc id="workers-text">{escape(words)}.</desc>{drawn}{_axis(height, split.wall_s)}</svg></div>'
        f"<p class='soft'>A lane is as high as the number of rollouts that its worker had under way, at most "
        f"{most:,.0f} here. {_legend(shown)}</p>"
    )


def _merged(lanes: list[Lane]) -> list[Lane]:
    """The workers with the most rollouts, in order of their beginning, and the rest together."""
    if len(lanes) <= LANES:
        return lanes
    busiest = sorted(lanes, key=lambda lane: len(lane.spans), reverse=True)[: LANES - 1]
    rest = [lane for lane in lanes if lane not in busiest]
    together = Lane(f"{len(rest)} others")
    for lane in rest:
        together.spans += lane.spans
        together.failed_s += lane.failed_s
        together.lost_s += lane.lost_s
    return [*(lane for lane in lanes if lane in busiest), together]


def _lane(number: int, lane: Lane, heights: list[float], most: float, began_s: float, wall_s: float) -> str:
    top, across, room = number * _LANE + 8, _WIDTH - _LEFT - _RIGHT, _LANE - 12
    base = top + room
    marks = "".join(
        f'<circle class="{kind}" cx="{_LEFT + share * across:.0f}" cy="{top + 3}" r="3.5"/>'
        for kind, times in (("lost", lane.lost_s), ("failed", lane.failed_s))
        for share in sorted({round((time_s - began_s) / wall_s, 2) for time_s in times})[:_MARKS]
        if 0 <= share <= 1
    )
    return (
        f"<g><title>{escape(_words(lane, max(heights)))}</title>"
        f'<rect class="lane" x="{_LEFT}" y="{top}" width="{across}" height="{room}"/>'
        f'<path class="cell first" d="{_outline(heights, most, base, room, across)}"/>{marks}'
        f'<text class="lane-name" x="0" y="{top + 19}">{escape(_short(lane.worker))}</text>'
        f'<text class="lane-share end" x="{_WIDTH}" y="{top + 19}">{len(lane.spans):,} attempts</text></g>'
    )


def _outline(heights: list[float], most: float, base: int, room: int, across: int) -> str:
    """The area under the lane's numbers, in steps; a number above 0 is at least one unit high."""
    parts, at = [f"M{_LEFT} {base}"], base
    for number, height in enumerate(heights):
        y = base if height <= 0 else base - max(1, round(height / most * room))
        if y != at:
            parts.append(f"H{_LEFT + round(number * across / len(heights))}V{y}")
            at = y
    return f"{''.join(parts)}H{_LEFT + across}V{base}Z"


def _words(lane: Lane, most: float) -> str:
    words = f"{lane.worker}: {len(lane.spans):,} attempts at rollouts, at most {most:,.0f} at once"
    words += f", {len(lane.lost_s):,} taken up again" if lane.lost_s else ""
    return words + (f", {len(lane.failed_s):,} failed" if lane.failed_s else "")


def _legend(lanes: list[Lane]) -> str:
    """What the marks mean, of those that there are."""
    told: list[str] = []
    if any(lane.lost_s for lane in lanes):
        told.append('<span class="key lost">last heard of before another attempt took it up</span>')
    if any(lane.failed_s for lane in lanes):
        told.append('<span class="key failed">failed</span>')
    return "".join(told)


def _axis(height: int, wall_s: float) -> str:
    across = _WIDTH - _LEFT - _RIGHT
    return "".join(
        f'<text class="tick {place}" x="{_LEFT + share * across:.0f}" y="{height - 6}">{words}</text>'
        for share, place, words in (
            (0.0, "", "0"),
            (0.5, "middle", f"{wall_s / 120:.1f} min"),
            (1.0, "end", f"{wall_s / 60:.1f} min"),
        )
    )


def _short(name: str) -> str:
    """The end of a name tells workers of one host apart."""
    return name if len(name) <= _NAME else f"…{name[1 - _NAME :]}"
