"""Axes: every value lies on them, and their ticks are round."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.report.axis import linear_axis, log_axis, whole_axis

VALUES = st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=20)


@given(VALUES, st.booleans())
def test_a_linear_axis_holds_its_values_and_has_a_few_ticks(values: list[float], from_zero: bool) -> None:
    axis = linear_axis(values, from_zero=from_zero)
    slack = 1e-9 * max(1.0, *map(abs, values))
    assert axis.low - slack <= min(values)
    assert axis.high + slack >= max(values)
    assert 2 <= len(axis.ticks) <= 8
    assert not from_zero or axis.low <= 0 <= axis.high


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.42, 0.8], ["0.4", "0.5", "0.6", "0.7", "0.8"]),
        ([-0.048, 0.032], ["-0.06", "-0.04", "-0.02", "0", "0.02", "0.04"]),
        ([0, 4230], ["0", "1k", "2k", "3k", "4k", "5k"]),
    ],
)
def test_linear_ticks_are_round(values: list[float], expected: list[str]) -> None:
    axis = linear_axis(values)
    assert [axis.label(tick) for tick in axis.ticks] == expected


@given(st.lists(st.floats(1e-12, 1e6), min_size=1, max_size=20))
def test_a_log_axis_runs_from_decade_to_decade(values: list[float]) -> None:
    axis = log_axis(values)
    assert axis.low <= min(values) * (1 + 1e-9)
    assert axis.high >= max(values) * (1 - 1e-9)
    assert [axis.label(tick)[:2] for tick in axis.ticks] == ["1e"] * len(axis.ticks)


def test_decades_are_equally_long() -> None:
    axis = log_axis([1e-5, 1e-3])
    assert [axis.place(value) for value in (1e-5, 1e-4, 1e-3)] == pytest.approx([0, 0.5, 1])


@pytest.mark.parametrize(
    ("values", "expected"), [([0], (0,)), ([0, 3], (0, 1, 2, 3)), ([0, 48], (0, 10, 20, 30, 40)), ([7, 9], (7, 8, 9))]
)
def test_whole_ticks_are_whole(values: list[float], expected: tuple[float, ...]) -> None:
    assert whole_axis(values).ticks[: len(expected)] == expected
