"""Numbers as a person reads them."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime

from stepwell.rl.passk import Estimate

_BARS = "▁▂▃▄▅▆▇█"


def duration(seconds: float) -> str:
    """`7.2 s`, `3 min 05 s`, `2 h 03 min`."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def clock_time(time_s: float) -> str:
    """`14:03:27`, here."""
    return datetime.fromtimestamp(time_s, UTC).astimezone().strftime("%H:%M:%S")


def number(value: float | None, form: str = ".3f") -> str:
    """A number, or a dash where there is none."""
    return "–" if value is None else format(value, form)


def with_interval(value: float | None, interval: Estimate | None) -> str:
    """`0.812 [0.760, 0.855]`."""
    return number(value) + (f" [{interval.low:.3f}, {interval.high:.3f}]" if interval else "")


def sparkline(values: Sequence[float], width: int) -> str:
    """The newest values as bars between their least and largest; equal values lie in the middle."""
    shown = [value for value in values[-width:] if math.isfinite(value)]
    if not shown:
        return ""
    low, high = min(shown), max(shown)
    if high == low:
        return _BARS[3] * len(shown)
    return "".join(_BARS[round((value - low) / (high - low) * (len(_BARS) - 1))] for value in shown)
