"""The page's tables and its statement of verification: what they say, and what they do not claim."""

import re
from dataclasses import replace

import pytest

from cli.report import is_verified_unasked
from stepwell.events import StepTrained
from stepwell.report.budgets import budgets_table
from stepwell.report.curves import curves
from stepwell.report.failures import ends_table, failures_table
from stepwell.report.operator_table import operators_table
from stepwell.report.page import render_page
from stepwell.report.picture import RunPicture
from stepwell.report.steps import StepPicture
from stepwell.report.verified import verified_section
from tests.report_story import audited, eventful_page, eventful_picture
from tests.synthetic_run import learning_run
from tests.told import told

HOSTILE = "</pre><script>alert(1)</script>"


def cells(html: str) -> list[list[str]]:
    """Rows of a table's body, as text."""
    rows = re.findall(r"<tr>(.*?)</tr>", html.partition("<tbody>")[2])
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in rows]


def test_failures_are_counted_by_kind_with_what_they_cost() -> None:
    found = {row[0]: row for row in cells(failures_table(eventful_picture()))}
    assert set(found) == {"rollout failed: infra", "rollout retaken", "engine restarted", "stalled: trainer"}
    assert (found["rollout failed: infra"][1], found["rollout failed: infra"][5]) == ("2", "because")
    assert found["stalled: trainer"][4] == "12.0"


def test_how_rollouts_ended_is_counted() -> None:
    assert cells(ends_table(eventful_picture()))[0][0] == "finished"
    assert ends_table(RunPicture("micro-1")) == ""


def test_budgets_stand_against_the_limits_in_force() -> None:
    rows = {row[0]: row[1:] for row in cells(budgets_table(eventful_picture()))}
    assert rows["hours, pauses included"] == ["0.1", "0.5", "20%", "the recipe"]
    assert rows["generated tokens"] == ["60,000", "90,000", "67%", "an operator"]
    assert rows["steps"] == ["24", "–", "–", "–"]


def test_what_was_not_measured_is_no_zero() -> None:
    page = budgets_table(RunPicture("micro-1"))
    assert cells(page)[1] == ["hours, pauses included", "–", "–", "–", "–"]
    assert "No usage was recorded" in page


def test_operators_are_named_with_time_and_reason() -> None:
    rows = cells(operators_table(eventful_picture()))
    assert [row[2] for row in rows] == [
        "limit generated_tokens = 90,000",
        "pause (now)",
        "resume",
        "an operator was asked: publish/3",
        "approve publish/3",
    ]
    assert {row[1] for row in rows} == {"ann@host", "the run"}
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", row[0]) for row in rows)


def test_a_run_without_disturbance_says_none() -> None:
    page = render_page(RunPicture("micro-1"))
    assert "None: no process was lost" in page
    assert "None: no operator acted" in page


def test_masks_are_those_that_the_trainer_counted_with_their_causes() -> None:
    step = StepPicture(3, generated_by=2, rollouts=8, masked=1)
    assert (step.staleness, step.mask_rate) == (1, 0.125)
    metrics = {"masked_context": 1.0, "masked_mismatch": 2.0, "masked_infra": 0.0}
    step.trained(told(StepTrained, step=3, parent=3, version=4, metrics=metrics), 5.0, None)
    assert (step.masks, step.mask_rate) == ({"context": 1, "mismatch": 2}, 0.375)


def test_staleness_masks_and_lengths_have_charts() -> None:
    charts = {chart.name: chart for chart in curves(eventful_picture())}
    assert [point.y for point in charts["staleness"].series[0].points] == [0] * 24
    assert charts["staleness"].title.endswith("training, bound 1")
    assert len(charts["masks"].series[0].points) == 24
    length = charts["lengths"].series[0].points[0]
    assert length.low is not None
    assert length.high is not None
    assert length.low <= length.y <= length.high


def test_a_page_that_was_not_verified_says_so_and_how_to() -> None:
    page = render_page(eventful_picture())
    assert "Not verified when this page was written" in page
    assert "stepwell report micro-1 --verify" in page
    assert "rules hold" not in page


def test_a_run_that_is_over_is_verified_unasked_unless_it_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    over, running = RunPicture("micro-1"), RunPicture("micro-1")
    over.see_all(learning_run(1).told)
    running.see_all(learning_run(1, finish=False).told)
    assert is_verified_unasked(over)
    assert not is_verified_unasked(running)
    monkeypatch.setattr("cli.report.VERIFIED_UP_TO", over.events - 1)
    assert not is_verified_unasked(over)


async def test_a_verified_page_names_rules_events_head_and_time() -> None:
    verified = await audited()
    page = verified_section("r", verified.head_seq, verified.head_hash, verified)
    results = verified.verification.results
    assert f"All {len(results)} rules hold over {verified.verification.events:,} events in " in page
    assert [row[0] for row in cells(page)] == [result.rule for result in results]
    assert verified.head_hash in page
    assert "up to #" not in page
    assert "Begun 2026-" in page


async def test_an_audit_of_an_older_head_says_which() -> None:
    verified = await audited()
    page = verified_section("r", verified.head_seq + 1, "f" * 64, verified)
    assert f"The audit read the run up to #{verified.head_seq}" in page


async def test_a_rule_that_fails_is_named_with_its_findings() -> None:
    verified = await audited()
    first = verified.verification.results[0]
    broken = replace(first, findings=tuple(f"x{number} < 1" for number in range(7)))
    results = (broken, *verified.verification.results[1:])
    verified = replace(verified, verification=replace(verified.verification, results=results))
    page = verified_section("r", verified.head_seq, verified.head_hash, verified)
    assert f"1 of {len(results)} rules FAIL (chains) over" in page
    assert page.count("<li>") == 5
    assert "x4 &lt; 1" in page
    assert "2 more;" in page
    assert verified.as_json()["failed"] == ["chains"]


async def test_what_people_and_policies_wrote_is_text_everywhere() -> None:
    page = await eventful_page(HOSTILE)
    assert HOSTILE not in page
    assert page.count("<script>") == 1
    assert page.count("&lt;script&gt;alert(1)") > 10
