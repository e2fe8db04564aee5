"""Plots with a row for each configuration, as inline SVG: marks, intervals and bars along one axis."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from stepwell.report.axis import Axis, linear_axis

WIDTH = 460
_LEFT, _RIGHT, _ROW, _BOTTOM = 142, 50, 26, 38
_LINE = 17
"""Height of a line of the rules' labels."""
_LETTER = 6.8
"""Width of a letter of these labels, at most."""
_NAME = 17
"""Letters of a row's name that fit beside it."""


@dataclass(frozen=True)
class Mark:
    """A value."""

    x: float
    kind: str
    """Class of its element."""
    tip: str
    """Text at the pointer."""


@dataclass(frozen=True)
class Bar:
    """A stretch."""

    start: float
    end: float
    kind: str
    tip: str


@dataclass(frozen=True)
class PlotRow:
    """One configuration."""

    name: str
    said: str
    """At the right end: its value, in words."""
    marks: Sequence[Mark] = ()
    interval: tuple[float, float] | None = None
    bars: Sequence[Bar] = ()
    is_shaded: bool = False


@dataclass(frozen=True)
class Rule:
    """A line down all rows to compare with."""

    x: float
    label: str


@dataclass(frozen=True)
class RowPlot:
    """One plot."""

    name: str
    """Id of its elements."""
    title: str
    x_name: str
    """Unit of the axis."""
    rows: Sequence[PlotRow]
    """At least one, with a mark or a bar."""
    legend: Sequence[tuple[str, str]] = ()
    """Class and word of each kind that needs one."""
    rules: Sequence[Rule] = ()
    fit: Sequence[float] = ()
    """Values that the axis must show beside marks, bars and rules. Ends of intervals that it does not are cut off, and
    marked so."""
    note: str = ""
    """Said below the title."""

    def figure(self) -> str:
        """As HTML."""
        legend = "".join(f'<span class="key {kind}">{escape(words)}</span>' for kind, words in self.legend)
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        return (
            f'<figure class="chart"><figcaption>{escape(self.title)}</figcaption>{note}'
            f'<p class="keys">{legend}</p>{self._svg()}</figure>'
        )

    def _svg(self) -> str:
        axis = self._axis()
        lines = _lines(self.rules, axis)
        top = 8 + _LINE * (max(lines, default=-1) + 1)
        bottom = top + _ROW * len(self.rows)
        parts = [_shade(number, row, top) for number, row in enumerate(self.rows)]
        parts += _ticks(axis, top, bottom, self.x_name)
        parts += [_rule(rule, line, axis, bottom) for rule, line in zip(self.rules, lines, strict=True)]
        parts += [_row(row, axis, top + _ROW * number + _ROW / 2) for number, row in enumerate(self.rows)]
        return (
            f'<svg class="rows" viewBox="0 0 {WIDTH} {bottom + _BOTTOM}" role="img" '
            f'aria-labelledby="{self.name}-title {self.name}-text">'
            f'<title id="{self.name}-title">{escape(self.title)}</title>'
            f'<desc id="{self.name}-text">{escape(self._words())}</desc>{"".join(parts)}</svg>'
        )

    def _axis(self) -> Axis:
        values = [rule.x for rule in self.rules] + list(self.fit)
        for row in self.rows:
            values += [mark.x for mark in row.marks]
            values += [end for bar in row.bars for end in (bar.start, bar.end)]
        return linear_axis(values, from_zero=True)

    def _words(self) -> str:
        """The plot for those who do not see it."""
        rules = "".join(f"; {rule.label}" for rule in self.rules)
        return f"{self.x_name}: {'; '.join(f'{row.name} {row.said}' for row in self.rows)}{rules}."


def _x(axis: Axis, value: float) -> float:
    return round(_LEFT + axis.place(value) * (WIDTH - _RIGHT - _LEFT), 1)


def _lines(rules: Sequence[Rule], axis: Axis) -> list[int]:
    """On which line above the rows each rule's label stands, so that none covers another."""
    ends: list[float] = []
    found = [0] * len(rules)
    for number, rule in sorted(enumerate(rules), key=lambda one: one[1].x):
        half = _LETTER * len(rule.label) / 2
        start, end = _label_at(rule, axis) - half, _label_at(rule, axis) + half
        line = next((at for at, before in enumerate(ends) if before + 8 <= start), len(ends))
        ends[line : line + 1] = [end]
        found[number] = line
    return found


def _label_at(rule: Rule, axis: Axis) -> float:
    """Middle of a rule's label, which stays within the drawing."""
    half = _LETTER * len(rule.label) / 2
    return round(min(max(_x(axis, rule.x), half), WIDTH - half), 1)


def _rule(rule: Rule, line: int, axis: Axis, bottom: float) -> str:
    x, y = _x(axis, rule.x), _LINE * (line + 1) - 4
    return (
        f'<line class="rule" x1="{x}" x2="{x}" y1="{y + 4}" y2="{bottom}"/>'
        f'<text class="rule-label middle" x="{_label_at(rule, axis)}" y="{y}">{escape(rule.label)}</text>'
    )


def _ticks(axis: Axis, top: float, bottom: float, name: str) -> list[str]:
    return [
        *(
            f'<line class="grid" x1="{_x(axis, tick)}" x2="{_x(axis, tick)}" y1="{top}" y2="{bottom}"/>'
            f'<text class="tick middle" x="{_x(axis, tick)}" y="{bottom + 16}">{axis.label(tick)}</text>'
            for tick in axis.ticks
        ),
        f'<text class="tick end" x="{WIDTH - _RIGHT + 10}" y="{bottom + 33}">{escape(name)}</text>',
    ]


def _shade(number: int, row: PlotRow, top: float) -> str:
    if not row.is_shaded:
        return ""
    return f'<rect class="lane" x="0" y="{top + _ROW * number}" width="{WIDTH}" height="{_ROW}"/>'


def _row(row: PlotRow, axis: Axis, y: float) -> str:
    parts = [
        f'<text class="row-name" x="4" y="{y + 4}"><title>{escape(row.name)}</title>{escape(_short(row.name))}</text>',
        f'<text class="row-value end" x="{WIDTH - 4}" y="{y + 4}">{escape(row.said)}</text>',
    ]
    parts += [
        f'<rect class="stretch {bar.kind}" x="{_x(axis, bar.start)}" y="{y - 7}" height="14" '
        f'width="{round(_x(axis, bar.end) - _x(axis, bar.start), 1)}" data-tip="{escape(bar.tip, quote=True)}"/>'
        for bar in row.bars
        if bar.end > bar.start
    ]
    if row.interval is not None:
        parts.append(_interval(row.interval, axis, y))
    parts += [
        f'<circle class="{mark.kind}" cx="{_x(axis, mark.x)}" cy="{y}" r="{2.6 if "run" in mark.kind else 4.2}" '
        f'data-tip="{escape(mark.tip, quote=True)}"/>'
        for mark in row.marks
    ]
    return f"<g>{''.join(parts)}</g>"


def _interval(interval: tuple[float, float], axis: Axis, y: float) -> str:
    """A bar with ends; an end beyond the axis is a point that shows on."""
    low, high = interval
    x1, x2 = _x(axis, low), _x(axis, high)
    left = f"M{x1 + 5} {y - 4}L{x1} {y}L{x1 + 5} {y + 4}" if low < axis.low else f"M{x1} {y - 6}V{y + 6}"
    right = f"M{x2 - 5} {y - 4}L{x2} {y}L{x2 - 5} {y + 4}" if high > axis.high else f"M{x2} {y - 6}V{y + 6}"
    return f'<path class="interval first" d="M{x1} {y}H{x2}{left}{right}"/>'


def _short(name: str) -> str:
    return name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"
