"""What of a trial a judge reads: bounded, the same for the same trial, with what was left out said.

First the places of signals, one of each detector in turn, so that a noisy one does not crowd out the rest; then
stretches evenly spread over traces and files.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stepwell.ptb.judges.signals import Signal
from stepwell.ptb.judges.sources import Source

MOST_CHARACTERS = 60_000
"""Of all excerpts of one charge."""
LONGEST_EXCERPT = 2_000
"""Characters of one."""
AROUND = 5
"""Lines before and after a signal."""
SIGNALS_SHARE = 0.7
"""Of the characters that signals may take while there is anything else to show."""
SPREAD = 24
"""Stretches beside the signals."""


@dataclass(frozen=True)
class Excerpt:
    """Some lines of a source."""

    id: str
    """How a judge cites it: `E1`, `E2`, …"""
    path: str
    first_line: int
    """From 1."""
    text: str


@dataclass(frozen=True)
class Selection:
    """What a judge reads."""

    excerpts: tuple[Excerpt, ...]
    """In the order of path and line."""
    signals_shown: int
    signals_left_out: int
    lines_shown: int
    lines: int
    """Of all sources."""


@dataclass(frozen=True)
class _Stretch:
    source: int
    first: int
    """From 0."""
    last: int
    """Included."""


def select(sources: Sequence[Source], signals: Sequence[Signal], most: int = MOST_CHARACTERS) -> Selection:
    """Chooses what a judge reads for one charge.

    Args:
        sources: Of the trial, redacted.
        signals: Of the charge.
        most: Characters in all.
    """
    chosen: list[_Stretch] = []
    places = {source.path: number for number, source in enumerate(sources)}
    used, shown = 0, 0
    rest = any(source.lines for source in sources)
    for signal in _in_turn([each for each in signals if each.line and each.path in places]):
        stretch = _around(sources, places[signal.path], signal.line - 1)
        if any(_covers(each, places[signal.path], signal.line - 1) for each in chosen):
            shown += 1
            continue
        size = len(_text(sources, stretch))
        if used + size > most * (SIGNALS_SHARE if rest else 1.0):
            continue
        chosen.append(stretch)
        used, shown = used + size, shown + 1
    for stretch in _spread(sources):
        size = len(_text(sources, stretch))
        if used + size <= most and not any(_overlap(stretch, each) for each in chosen):
            chosen.append(stretch)
            used += size
    ordered = sorted(chosen, key=lambda each: (each.source, each.first))
    excerpts = tuple(
        Excerpt(f"E{number}", sources[each.source].path, each.first + 1, _text(sources, each))
        for number, each in enumerate(ordered, 1)
    )
    with_lines = sum(1 for each in signals if each.line)
    return Selection(
        excerpts=excerpts,
        signals_shown=shown,
        signals_left_out=with_lines - shown,
        lines_shown=sum(each.last - each.first + 1 for each in ordered),
        lines=sum(len(source.lines) for source in sources),
    )


def _in_turn(signals: Sequence[Signal]) -> Iterator[Signal]:
    """One of each detector, then the next of each."""
    by_detector: defaultdict[str, list[Signal]] = defaultdict(list)
    for signal in signals:
        by_detector[signal.detector].append(signal)
    for turn in range(max(map(len, by_detector.values()), default=0)):
        for detector in sorted(by_detector):
            yield from by_detector[detector][turn : turn + 1]


def _around(sources: Sequence[Source], source: int, line: int) -> _Stretch:
    return _Stretch(source, max(0, line - AROUND), min(len(sources[source].lines) - 1, line + AROUND))


def _spread(sources: Sequence[Source]) -> Iterator[_Stretch]:
    """Stretches that begin at evenly spaced lines, the last line's among them."""
    total = sum(len(source.lines) for source in sources)
    wanted = sorted({round(step * (total - 1) / (SPREAD - 1)) for step in range(SPREAD)}) if total else []
    before = 0
    for number, source in enumerate(sources):
        for line in (each - before for each in wanted if before <= each < before + len(source.lines)):
            yield _around(sources, number, line)
        before += len(source.lines)


def _text(sources: Sequence[Source], stretch: _Stretch) -> str:
    """The lines, each cut so that the whole keeps within its bound."""
    lines = sources[stretch.source].lines[stretch.first : stretch.last + 1]
    longest = max(1, LONGEST_EXCERPT // len(lines) - 1)
    return "\n".join(line if len(line) <= longest else line[: longest - 1] + "…" for line in lines)


def _covers(stretch: _Stretch, source: int, line: int) -> bool:
    return stretch.source == source and stretch.first <= line <= stretch.last


def _overlap(one: _Stretch, other: _Stretch) -> bool:
    return one.source == other.source and one.first <= other.last and other.first <= one.last
