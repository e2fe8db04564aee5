"""The page as text: what it says for every state of a run, and that what others wrote stays text."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

from stepwell.events.run_finished import RunEnd
from stepwell.report.chart import Chart, Point, Rule, Series
from stepwell.report.digests import short_digests
from stepwell.report.examples import Transcript, TranscriptTurn
from stepwell.report.page import render_page
from stepwell.report.picture import RunPicture
from stepwell.report.tables import recipe_lines
from tests.synthetic_run import Story, learning_run


def picture_of(story: Story) -> RunPicture:
    picture = RunPicture(story.run)
    picture.see_all(story.told)
    return picture


def drawing(figure: str) -> ElementTree.Element:
    found = re.search(r"<svg.*</svg>", figure, re.DOTALL)
    assert found is not None
    return ElementTree.fromstring(found.group(0))


def test_every_drawing_is_well_formed_and_named() -> None:
    page = render_page(picture_of(learning_run(9)))
    drawings = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(drawings) == 13
    for each in drawings:
        root = ElementTree.fromstring(each)
        assert root.get("role") == "img"
        assert root.findtext("title")
        assert root.findtext("desc")


@pytest.mark.parametrize("events", [0, 1, 3, 40, 160])
def test_a_run_that_has_just_begun_has_a_page(events: int) -> None:
    picture = RunPicture("micro-1")
    picture.see_all(learning_run(2).told[:events])
    page = render_page(picture)
    assert "Not finished" in page
    assert page.count("<figure") == 11


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (RunEnd.TARGET, "Reached its target"),
        (RunEnd.MAX_STEPS, "Did its last step"),
        (RunEnd.STOPPED, "Stopped by an operator: enough &lt;now&gt;"),
        (RunEnd.FAILED, "Failed: enough &lt;now&gt;"),
    ],
)
def test_the_page_says_how_the_run_ended(end: RunEnd, words: str) -> None:
    story = Story()
    story.created(0)
    story.finished(1, end, 0, "enough <now>" if end in (RunEnd.STOPPED, RunEnd.FAILED) else "")
    assert words in render_page(picture_of(story))


def test_the_page_names_the_head_that_commits_to_the_run() -> None:
    picture = picture_of(learning_run(2))
    page = render_page(picture)
    assert picture.head_hash in page
    assert f"#{picture.head_seq}" in page


def test_what_the_policy_wrote_is_text() -> None:
    hostile = '</pre><script>alert("x")</script>'
    turn = TranscriptTurn(hostile, {"text": hostile}, hostile, 3)
    page = render_page(RunPicture("micro-1"), [Transcript("First solved", hostile, 1.0, (turn,))])
    assert hostile not in page
    assert page.count("<script>") == 1


def test_points_above_are_drawn_above() -> None:
    chart = Chart("c", "C", "step", [Series("s", [Point(0, 0.1, "low"), Point(1, 0.9, "high")])])
    circles = drawing(chart.figure()).findall("circle")
    assert [circle.get("data-tip") for circle in circles] == ["low", "high"]
    assert float(circles[0].get("cy", "")) > float(circles[1].get("cy", ""))
    assert float(circles[0].get("cx", "")) < float(circles[1].get("cx", ""))


def test_a_bound_is_in_view_on_a_logarithmic_axis_and_zeros_are_left_out() -> None:
    points = [Point(0, 0.0, "zero"), Point(1, 2e-5, "small")]
    chart = Chart("c", "C", "step", [Series("s", points)], rule=Rule(1e-3, "bound 0.001"), logarithmic=True)
    root = drawing(chart.figure())
    assert [circle.get("data-tip") for circle in root.findall("circle")] == ["small"]
    labels = [text.text for text in root.findall("text")]
    assert "bound 0.001" in labels
    assert {"1e-5", "1e-4", "1e-3"} <= set(labels)


def test_a_chart_without_points_says_so() -> None:
    assert "Nothing yet" in Chart("c", "C", "step", [Series("s", [])]).figure()


def test_the_recipe_is_shown_as_it_may_be_set() -> None:
    recipe = {"name": "micro", "run": {"max_steps": 3, "deep": {"x": None}}, "tasks": {}}
    assert recipe_lines(recipe).splitlines() == [
        'name = "micro"',
        "run.max_steps = 3",
        "run.deep.x = null",
        "tasks = {}",
    ]


def test_digests_are_cut_for_people() -> None:
    assert short_digests(f"shipped {'ab' * 32}, kept") == "shipped abababababab…, kept"
    assert short_digests("warm-up") == "warm-up"
