"""Rollouts by worker: who had how many under way when, and that a long run's drawing stays small."""

import random
import xml.etree.ElementTree as ElementTree

import pytest

from stepwell.report.picture import RunPicture
from stepwell.report.worker_chart import LANES, worker_figure
from stepwell.report.worker_timeline import Lane
from tests.synthetic_run import T0, Story


def picture_of(story: Story) -> RunPicture:
    picture = RunPicture(story.run)
    picture.see_all(story.told)
    return picture


def begun() -> Story:
    story = Story()
    story.created(0)
    story.dispatched(10, 0)
    return story


def lanes_of(story: Story) -> dict[str, Lane]:
    return {lane.worker: lane for lane in picture_of(story).worker_lanes()}


def test_a_rollout_that_was_lost_ends_where_it_was_last_heard_of() -> None:
    story, name = begun(), "rollout/micro-1/0/0/0"
    story.attempt(10, name, "1", worker="a/1")
    story.turn(14, name, 0, generate_s=3, tool_s=1, tokens=5)
    story.attempt(20, name, "2", worker="a/2", resumed_at=1)
    story.ended(25, name)
    story.attempt(26, name, "3", worker="a/3")
    lanes = lanes_of(story)
    assert set(lanes) == {"a/1", "a/2"}, "who takes an ended rollout up only grades it"
    assert (lanes["a/1"].spans, lanes["a/1"].lost_s) == ([(T0 + 10, T0 + 14)], [T0 + 14])
    assert (lanes["a/2"].spans, lanes["a/2"].lost_s) == ([(T0 + 20, T0 + 25)], [])


def test_what_a_pause_held_was_not_lost() -> None:
    story, name = begun(), "rollout/micro-1/0/0/0"
    story.attempt(10, name, "1", worker="a/1")
    story.acted(11, "pause", at="now")
    story.acted(20, "resume")
    story.attempt(20, name, "2", worker="a/2")
    assert lanes_of(story)["a/1"].lost_s == []


def test_failures_are_marked_and_open_attempts_last_until_now() -> None:
    story = begun()
    story.attempt(10, "rollout/micro-1/0/0/0", "1")
    story.failed(13, "rollout/micro-1/0/0/0", "no host")
    story.attempt(11, "rollout/micro-1/0/0/1", "2")
    story.admitted(30, 0, 0.5)
    lane = lanes_of(story)["a/1"]
    assert lane.failed_s == [T0 + 13]
    assert lane.spans == [(T0 + 10, T0 + 13), (T0 + 11, T0 + 30)]


def test_heights_are_the_mean_number_under_way() -> None:
    lane = Lane("w", [(0.0, 10.0), (5.0, 7.5), (-3.0, 1.0)])
    assert lane.under_way(0.0, 10.0, 4) == pytest.approx([1.4, 1.0, 2.0, 1.0])


def test_the_drawing_of_ten_thousand_rollouts_of_many_workers_is_small_and_well_formed() -> None:
    story, dice = begun(), random.Random(0)
    picture = picture_of(story)
    for number in range(10_000):
        at = T0 + 10 + dice.random() * 3000
        lane = picture.timeline.lane(f"host-{number % 40}/{number % 40}")
        lane.spans.append((at, at + dice.random() * 60))
        lane.lost_s.append(at)
    picture.newest_s = T0 + 3100
    figure = worker_figure(picture)
    assert len(figure) < 100_000
    root = ElementTree.fromstring(figure[figure.index("<svg") : figure.index("</svg>") + 6])
    assert len(root.findall("g")) == LANES
    assert "25 others: 6,250 attempts" in figure


def test_before_the_first_rollout_the_page_says_so() -> None:
    assert "No rollout has begun" in worker_figure(picture_of(begun()))
