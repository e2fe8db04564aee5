"""Unions of intervals, and where a wall clock went."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.report.cover import Activities, Activity, Cover

INTERVALS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=30)


@pytest.mark.parametrize(
    ("added", "expected"),
    [
        ([], []),
        ([(3, 3)], []),
        ([(5, 2)], []),
        ([(1, 2), (4, 6)], [(1, 2), (4, 6)]),
        ([(4, 6), (1, 2)], [(1, 2), (4, 6)]),
        ([(1, 3), (2, 6)], [(1, 6)]),
        ([(1, 2), (2, 3)], [(1, 3)]),
        ([(1, 2), (3, 4), (5, 6), (0, 9)], [(0, 9)]),
        ([(1, 2), (3, 4), (5, 6), (3.5, 5.5)], [(1, 2), (3, 6)]),
    ],
)
def test_cover_is_the_union(added: list[tuple[float, float]], expected: list[tuple[float, float]]) -> None:
    cover = Cover()
    for start, end in added:
        cover.add(start, end)
    assert cover.within(-100, 100) == expected


@given(INTERVALS, st.integers(0, 60), st.integers(0, 60))
def test_seconds_count_every_covered_second_once(intervals: list[tuple[int, int]], low: int, high: int) -> None:
    cover = Cover()
    for start, end in intervals:
        cover.add(start, end)
    counted = sum(any(start <= second < end for start, end in intervals) for second in range(low, high))
    assert cover.seconds(low, high) == counted


def test_split_tells_overlaps_by_activity_and_the_rest_as_overhead() -> None:
    activities = Activities()
    activities.ended(Activity.GENERATION, end_s=10, duration_s=10)  # 0 to 10
    activities.ended(Activity.TRAINING, end_s=14, duration_s=6)  # 8 to 14
    activities.ended(Activity.TOOLS, end_s=17, duration_s=1)  # 16 to 17
    activities.ended(Activity.LOADING, end_s=40, duration_s=10)  # after the end
    split = activities.split(2, 20)
    assert split.wall_s == 18
    assert split.busy_s == 13
    assert split.overhead_s == 5
    assert split.overhead == pytest.approx(5 / 18)
    assert split.longest_idle_s == 3
    assert split.by_activity_s == {
        Activity.GENERATION: 8,
        Activity.TOOLS: 1,
        Activity.GRADING: 0,
        Activity.TRAINING: 6,
        Activity.LOADING: 0,
    }


def test_no_time_has_no_overhead() -> None:
    assert Activities().split(5, 5).overhead == 0
