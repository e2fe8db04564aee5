"""Where the time went, as a drawing: a lane an activity, its share beside it."""

from html import escape

from stepwell.report.cover import Activity, Cover
from stepwell.report.picture import RunPicture

_WIDTH, _LANE, _LEFT, _RIGHT = 960, 30, 110, 150
_CELLS = 350
"""Moments that a lane is cut into: each is shown as dark as its covered share."""


def time_figure(picture: RunPicture) -> str:
    """Lanes over the reinforcement part, as HTML; empty before it began."""
    split, began_s = picture.time_split(), picture.reinforcement_began_s
    if split is None or began_s is None or split.wall_s <= 0:
        return ""
    rows = [
        (activity.value, picture.activities.covers[activity], split.by_activity_s[activity], "first")
        for activity in Activity
    ]
    rows.append(("any of them", picture.activities.anything, split.busy_s, "quiet"))
    lanes = [
        _lane(number, name, cover, seconds, began_s, split.wall_s, tone)
        for number, (name, cover, seconds, tone) in enumerate(rows)
    ]
    height = len(rows) * _LANE + 26
    words = ", ".join(f"{name} {seconds:.0f} s" for name, _, seconds, _ in rows)
    return (
        f'<div class="wide"><svg class="lanes" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-labelledby="lanes-title lanes-text"><title id="lanes-title">What was under way when</title>'
        f'<desc id="lanes-text">{escape(f"Of {split.wall_s:.0f} s: {words}; overhead {split.overhead:.1%}.")}</desc>'
        f"{''.join(lanes)}{_ends(height, split.wall_s)}</svg></div>"
    )


def _lane(number: int, name: str, cover: Cover, seconds: float, began_s: float, wall_s: float, tone: str) -> str:
    top, across = number * _LANE + 6, _WIDTH - _LEFT - _RIGHT
    cells = _cells(cover, began_s, wall_s)
    drawn = "".join(
        f'<rect class="cell {tone}" x="{_LEFT + start * across / _CELLS:.1f}" y="{top}" '
        f'width="{(end - start) * across / _CELLS:.1f}" height="{_LANE - 12}" fill-opacity="{shade / 10:g}"/>'
        for start, end, shade in cells
        if shade
    )
    share = f"{seconds:,.0f} s · {seconds / wall_s:.0%}"
    return (
        f'<rect class="lane" x="{_LEFT}" y="{top}" width="{across}" height="{_LANE - 12}"/>{drawn}'
        f'<text class="lane-name" x="0" y="{top + 14}">{escape(name)}</text>'
        f'<text class="lane-share end" x="{_WIDTH}" y="{top + 14}">{share}</text>'
    )


def _cells(cover: Cover, began_s: float, wall_s: float) -> list[tuple[int, int, int]]:
    """(first, after, shade 0 to 10) of runs of equally covered moments."""
    width_s = wall_s / _CELLS
    covered = [0.0] * _CELLS
    for start_s, end_s in cover.within(began_s, began_s + wall_s):
        first = int((start_s - began_s) / width_s)
        for cell in range(first, min(_CELLS, int((end_s - began_s) / width_s) + 1)):
            low_s = began_s + cell * width_s
            covered[cell] += max(0.0, min(end_s, low_s + width_s) - max(start_s, low_s))
    runs: list[tuple[int, int, int]] = []
    for cell, seconds in enumerate(covered):
        shade = round(10 * min(1.0, seconds / width_s))
        if runs and runs[-1][2] == shade:
            runs[-1] = (runs[-1][0], cell + 1, shade)
        else:
            runs.append((cell, cell + 1, shade))
    return runs


def _ends(height: int, wall_s: float) -> str:
    """Time at the lanes' ends."""
    return (
        f'<text class="tick" x="{_LEFT}" y="{height - 6}">0</text>'
        f'<text class="tick end" x="{_WIDTH - _RIGHT}" y="{height - 6}">{wall_s / 60:.1f} min</text>'
    )
