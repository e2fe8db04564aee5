"""Line charts as inline SVG: complete without a script, which adds only what a pointer shows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from stepwell.report.axis import Axis, linear_axis, log_axis, whole_axis

WIDTH, HEIGHT = 460, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 54, 14, 12, 40

Tone = Literal["first", "second", "quiet"]


@dataclass(frozen=True)
class Point:
    """A value with what is said of it."""

    x: float
    y: float
    tip: str
    """Text at the pointer."""
    low: float | None = None
    """Lower end of its interval."""
    high: float | None = None
    """Upper end."""


@dataclass(frozen=True)
class Series:
    """Points of one kind."""

    name: str
    """In the legend."""
    points: Sequence[Point]
    """In order of x."""
    tone: Tone = "first"
    """Colour."""
    line: bool = True
    """Whether they are joined."""
    dots: bool = True
    """Whether each is marked; unmarked points still answer the pointer."""


@dataclass(frozen=True)
class Rule:
    """A horizontal line to compare with."""

    y: float
    label: str


@dataclass(frozen=True)
class Chart:
    """One chart."""

    name: str
    """Id of its elements."""
    title: str
    """What it shows."""
    x_name: str
    """Unit of x."""
    series: Sequence[Series]
    """At least one with a point."""
    rule: Rule | None = None
    """Target or bound."""
    logarithmic: bool = False
    """Whether y is; values of 0 and below are left out."""
    from_zero: bool = False
    """Whether y shows 0."""
    whole_x: bool = True
    """Whether x counts something."""

    def figure(self) -> str:
        """As HTML: caption, legend, drawing. A chart without points says so."""
        shown = [Series(s.name, self._drawable(s.points), s.tone, s.line, s.dots) for s in self.series]
        shown = [series for series in shown if series.points]
        if not shown:
            return f'<figure class="chart"><figcaption>{escape(self.title)}</figcaption><p>Nothing yet.</p></figure>'
        legend = "".join(f'<span class="key {s.tone}">{escape(s.name)}</span>' for s in shown) if shown[1:] else ""
        return (
            f'<figure class="chart"><figcaption>{escape(self.title)}<span class="legend">{legend}</span></figcaption>'
            f"{self._svg(shown)}</figure>"
        )

    def _drawable(self, points: Sequence[Point]) -> list[Point]:
        return [point for point in points if not self.logarithmic or point.y > 0]

    def _svg(self, series: Sequence[Series]) -> str:
        x_axis, y_axis = self._axes(series)
        place_x = _placer(x_axis, _LEFT, WIDTH - _RIGHT)
        place_y = _placer(y_axis, HEIGHT - _BOTTOM, _TOP)
        parts = [*_grid(y_axis, place_y), *_x_ticks(x_axis, place_x, self.x_name)]
        parts += [_band(each, place_x, place_y) for each in series]
        if self.rule is not None:
            parts.append(_rule(self.rule, place_y(self.rule.y)))
        parts += [_path(each, place_x, place_y) for each in series if each.line]
        parts += [_dots(each, place_x, place_y) for each in series]
        return (
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="{self.name}-title {self.name}-text">'
            f'<title id="{self.name}-title">{escape(self.title)}</title>'
            f'<desc id="{self.name}-text">{escape(self._words(series))}</desc>{"".join(parts)}</svg>'
        )

    def _axes(self, series: Sequence[Series]) -> tuple[Axis, Axis]:
        points = [point for each in series for point in each.points]
        heights = [y for p in points for y in (p.y, p.low, p.high) if y is not None]
        if self.rule is not None:
            heights.append(self.rule.y)
        across = [point.x for point in points]
        x_axis = whole_axis(across) if self.whole_x else linear_axis(across, from_zero=True)
        return x_axis, log_axis(heights) if self.logarithmic else linear_axis(heights, from_zero=self.from_zero)

    def _words(self, series: Sequence[Series]) -> str:
        """The chart for those who do not see it: each series' first and last value."""
        told = [f"{each.name} from {each.points[0].y:.4g} to {each.points[-1].y:.4g}" for each in series]
        rule = f"; {self.rule.label}" if self.rule else ""
        return f"By {self.x_name}: {', '.join(told)}{rule}."


def _placer(axis: Axis, at_0: float, at_1: float) -> Callable[[float], float]:
    return lambda value: round(at_0 + axis.place(value) * (at_1 - at_0), 1)


def _grid(axis: Axis, place_y: Callable[[float], float]) -> list[str]:
    return [
        f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{place_y(tick)}" y2="{place_y(tick)}"/>'
        f'<text class="tick end" x="{_LEFT - 8}" y="{place_y(tick) + 4}">{axis.label(tick)}</text>'
        for tick in axis.ticks
    ]


def _x_ticks(axis: Axis, place_x: Callable[[float], float], name: str) -> list[str]:
    below = HEIGHT - _BOTTOM + 16
    ticks = [f'<text class="tick middle" x="{place_x(t)}" y="{below}">{axis.label(t)}</text>' for t in axis.ticks]
    title = f'<text class="tick end" x="{WIDTH - _RIGHT}" y="{HEIGHT - 6}">{escape(name)}</text>'
    return [*ticks, title]


def _rule(rule: Rule, y: float) -> str:
    above = y - 6 if y > _TOP + 16 else y + 15
    return (
        f'<line class="rule" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y}" y2="{y}"/>'
        f'<text class="rule-label" x="{_LEFT + 4}" y="{above}">{escape(rule.label)}</text>'
    )


def _band(series: Series, place_x: Callable[[float], float], place_y: Callable[[float], float]) -> str:
    """The intervals: a bar at each point, and a band where there are enough points to show a course."""
    ends = [
        (place_x(p.x), place_y(p.low), place_y(p.high))
        for p in series.points
        if p.low is not None and p.high is not None
    ]
    if not ends:
        return ""
    bars = "".join(
        f'<line class="bar {series.tone}" x1="{x}" x2="{x}" y1="{low}" y2="{high}"/>' for x, low, high in ends
    )
    outline = [f"{x},{high}" for x, _, high in ends] + [f"{x},{low}" for x, low, _ in reversed(ends)]
    return f'<polygon class="band {series.tone}" points="{" ".join(outline)}"/>{bars}' if ends[2:] else bars


def _path(series: Series, place_x: Callable[[float], float], place_y: Callable[[float], float]) -> str:
    points = " ".join(f"{place_x(point.x)},{place_y(point.y)}" for point in series.points)
    return f'<polyline class="curve {series.tone}" points="{points}"/>'


def _dots(series: Series, place_x: Callable[[float], float], place_y: Callable[[float], float]) -> str:
    kind = "dot" if series.dots else "ghost"
    return "".join(
        f'<circle class="{kind} {series.tone}" cx="{place_x(p.x)}" cy="{place_y(p.y)}" r="3" '
        f'data-tip="{escape(p.tip, quote=True)}"/>'
        for p in series.points
    )
