"""Axes of charts: where a value lies, and which ticks a reader expects."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """A scale from values to `[0, 1]`."""

    low: float
    """Value at 0."""
    high: float
    """Value at 1; above `low`."""
    ticks: tuple[float, ...]
    """Values with a label."""
    logarithmic: bool = False
    """Whether decades are equally long; `low` is then above 0."""

    def place(self, value: float) -> float:
        """Where a value lies; outside of the axis it is put at its end."""
        if self.logarithmic:
            low, high, value = math.log10(self.low), math.log10(self.high), math.log10(max(value, self.low))
        else:
            low, high = self.low, self.high
        return min(1.0, max(0.0, (value - low) / (high - low)))

    def label(self, tick: float) -> str:
        """A tick as text, no longer than it must be."""
        if self.logarithmic:
            return f"1e{round(math.log10(tick))}"
        if tick and abs(tick) >= 1000:
            return f"{tick / 1000:g}k"
        return f"{tick:.6g}"


def linear_axis(values: Sequence[float], *, ticks: int = 5, from_zero: bool = False) -> Axis:
    """An axis over values with round ticks at a step of 1, 2 or 5 times a power of ten; it ends at ticks.

    Raises:
        ValueError: no values.
    """
    low, high = min(values), max(values)
    if from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if high == low:
        half = abs(high) / 2 or 0.5
        low, high = (low, high + 2 * half) if from_zero else (low - half, high + half)
    step = _round_step((high - low) / ticks)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    at = tuple(round(number * step, 12) for number in range(first, last + 1))
    return Axis(at[0], at[-1], at)


def whole_axis(values: Sequence[float], *, ticks: int = 6) -> Axis:
    """An axis over whole numbers, as steps and versions are: its ticks are whole, its ends the values'.

    Raises:
        ValueError: no values.
    """
    low, high = math.floor(min(values)), math.ceil(max(values))
    if high == low:
        high = low + 1
    step = max(1, round(_round_step((high - low) / ticks)))
    return Axis(low, high, tuple(float(tick) for tick in range(-(-low // step) * step, high + 1, step)))


def log_axis(values: Sequence[float]) -> Axis:
    """A logarithmic axis over the positive values, from decade to decade.

    Raises:
        ValueError: no positive value.
    """
    positive = [value for value in values if value > 0]
    low, high = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)))
    if high == low:
        high += 1
    return Axis(10.0**low, 10.0**high, tuple(10.0**power for power in range(low, high + 1)), logarithmic=True)


def _round_step(rough: float) -> float:
    """The least of 1, 2, 5 times a power of ten that is not below."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
