"""What holds a run up is shown with its cause and with what to do, once at each change."""

import io

import pytest
from rich.console import Console

from cli.live import summary
from cli.live.plain import PlainView
from cli.live.screen import ScreenView
from cli.live.waits import waits
from stepwell.contracts.operators import OpenHold
from stepwell.contracts.run import Progress, Stall, Usage
from stepwell.events import HoldRaised, OperatorActed, StallBegan, StallEnded, UsageRecorded
from stepwell.events.base import Event
from stepwell.events.run_finished import RunEnd
from stepwell.report.page import render_page
from stepwell.report.picture import RunPicture
from stepwell.report.snapshot import snapshot
from tests.synthetic_run import Story

CAUSE = "no trainer worker is alive (the last one, a/7, was seen 12 s ago); start one: stepwell worker trainer"
SILENCE = "waiting for a control worker: none is alive (none has been seen); start one: stepwell worker control"
BEGAN = StallBegan(number=0, what="trainer", cause=CAUSE, noticed_after_s=12.0)
ENDED = StallEnded(number=0, lasted_s=30.0)
PUBLISH = HoldRaised(hold="publish/3", number=0, cause="the recipe asks before version 3 is served")
TOKENS = HoldRaised(hold="limit/generated_tokens", number=0, cause="generated 1,000,003 tokens; the limit is 1,000,000")
USED = UsageRecorded(
    number=0,
    hours=0.52,
    gpu_hours=1.04,
    generated_tokens=12000,
    sandbox_minutes=3.1,
    seen_xid=7,
    seen_position=9,
)


def act(action: str, update: str = "u", reason: str = "the disk is replaced", **arguments: object) -> OperatorActed:
    body = {"action": action, "arguments": arguments, "who": "ann@host", "reason": reason, "update": update}
    return OperatorActed.model_validate(body)


def picture_after(*events: Event) -> RunPicture:
    story = Story()
    story.created(0)
    for second, event in enumerate(events, 1):
        kind = "operator" if isinstance(event, OperatorActed | HoldRaised) else "health"
        story.tell(second, f"{kind}/micro-1", event)
    picture = RunPicture("micro-1")
    picture.see_all(story.told)
    return picture


def progress_of(**known: object) -> Progress:
    idle = {"state": "running", "waiting_for": "rollouts", "version": 1, "generating": 1, "open_groups": 2}
    return Progress.model_validate({**idle, "training": 1, "serving": 1, "last_validation": None, **known})


def lines_of(picture: RunPicture, progress: Progress | None = None, silence: str = "") -> list[str]:
    return [wait.line for wait in waits(picture, progress, silence)]


def test_a_stall_is_shown_by_its_cause_until_it_is_over() -> None:
    assert lines_of(picture_after(BEGAN)) == [f"waiting for trainer: {CAUSE}"]
    assert lines_of(picture_after(BEGAN, ENDED)) == []


def test_what_the_workflow_says_goes_before_what_the_ledger_said_last() -> None:
    assert lines_of(picture_after(BEGAN), progress_of()) == []
    said = progress_of(stalls=(Stall(what="sandbox", cause="none"),), holds=(OpenHold(hold="publish/2", cause="asks"),))
    first, second = lines_of(picture_after(), said)
    assert first == "waiting for sandbox: none"
    assert second.startswith("waiting for an operator: publish/2: asks;")


@pytest.mark.parametrize(
    ("event", "command"),
    [
        (PUBLISH, "stepwell approve micro-1 publish/3 --reason"),
        (TOKENS, "stepwell limit micro-1 generated_tokens=VALUE --reason"),
    ],
)
def test_a_hold_is_shown_with_the_command_that_answers_it(event: HoldRaised, command: str) -> None:
    (line,) = lines_of(picture_after(event))
    assert event.cause in line
    assert command in line


def test_an_answered_hold_holds_no_longer() -> None:
    assert lines_of(picture_after(PUBLISH, act("approve", gate="publish/3"))) == []
    assert lines_of(picture_after(TOKENS, act("limit", limit="generated_tokens", value=2e6))) == []


def test_a_pause_is_shown_with_who_and_why() -> None:
    (line,) = lines_of(picture_after(act("pause", at="now")))
    assert "paused (now) by ann@host" in line
    assert "the disk is replaced; `stepwell resume micro-1` ends it" in line
    assert lines_of(picture_after(act("pause", at="now"), act("resume", update="v"))) == []


def test_a_silent_workflow_is_the_first_thing_said() -> None:
    assert lines_of(picture_after(BEGAN), None, SILENCE)[0] == SILENCE


def test_a_run_that_is_over_waits_for_nothing() -> None:
    story = Story()
    story.tell(1, "health/micro-1", BEGAN)
    story.finished(2, RunEnd.STOPPED, 1)
    picture = RunPicture("micro-1")
    picture.see_all(story.told)
    assert lines_of(picture, None, SILENCE) == []


def test_a_log_has_one_line_at_each_change() -> None:
    out, story = io.StringIO(), Story()
    view, picture = PlainView(Console(file=out, width=200)), RunPicture("micro-1")
    told = [("", None), ("", BEGAN), (SILENCE, None), (SILENCE, ENDED), ("", None), ("", PUBLISH), ("", None)]
    for second, (silence, event) in enumerate(told):
        if event is not None:
            kind = "operator" if isinstance(event, HoldRaised) else "health"
            story.tell(second, f"{kind}/micro-1", event)
            picture.see(*story.told[-1])
        for _ in range(3):
            view.update(picture, None, silence)
    lines = out.getvalue().splitlines()
    assert lines[:4] == [
        f"waiting for trainer: {CAUSE}",
        SILENCE,
        "no longer waiting for trainer, after 2.0 s",
        "the run's workflow answers again",
    ]
    assert lines[4].startswith("waiting for an operator: publish/3")
    assert len(lines) == 5


def test_a_terminal_shows_what_holds_the_run_up_and_what_it_used() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=160, height=50, color_system=None)
    view = ScreenView(console)
    view.update(picture_after(BEGAN, USED, act("limit", limit="hours", value=4), PUBLISH), None, SILENCE)
    view.close()
    shown = out.getvalue()
    for words in (
        "waiting for a control worker",
        "waiting for trainer",
        "approve micro-1 publish/3",
        "0.52 of 4 hours",
    ):
        assert words in shown, words


def test_usage_of_the_workflow_is_newer_than_that_of_the_ledger() -> None:
    out = io.StringIO()
    usage = Usage(hours=0.6, gpu_hours=1.2, generated_tokens=13000, sandbox_minutes=3.4)
    view = ScreenView(Console(file=out, force_terminal=True, width=160, height=50, color_system=None))
    view.update(picture_after(USED), progress_of(usage=usage))
    view.close()
    assert "0.6 hours, 1.2 GPU-hours, 13,000 tokens, 3.4 sandbox-minutes" in out.getvalue()


def test_page_summary_and_snapshot_tell_of_stalls_holds_and_acts() -> None:
    picture = picture_after(BEGAN, ENDED, PUBLISH, act("approve", gate="publish/3", reason="looks good"), USED)
    page, figures, plain = render_page(picture), snapshot(picture), summary(picture)
    for words in ("stalled for 1 s", "an operator was asked", "approve publish/3", "looks good"):
        assert words in page, words
    assert (figures["stalls"][0]["what"], figures["holds"], figures["pause"]) == ("trainer", [], None)
    assert figures["usage"]["gpu_hours"] == 1.04
    assert "1 × trainer" in plain
    assert "1 acts, last approve publish/3" in plain
