"""What a terminal shows of a run, and what a log file gets."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from cli.live import make_view, summary
from cli.live.plain import PlainView
from cli.live.screen import ScreenView
from cli.live.words import duration, sparkline
from stepwell.contracts.run import Progress
from stepwell.events import OperatorActed
from stepwell.events.group_closed import Fate
from stepwell.events.run_finished import RunEnd
from stepwell.report.picture import RunPicture
from tests.synthetic_run import T0, Story, learning_run

METRICS = {"loss": -0.01, "grad_norm": 0.8, "mismatch_mean": 3.1e-5, "mismatch_max": 4e-4, "tokens": 1200.0}
PROGRESS = Progress(
    state="paused",
    waiting_for="an operator's resume (before step 3)",
    version=3,
    generating=3,
    open_groups=2,
    training=3,
    serving=3,
    last_validation=None,
)


class Clock:
    """A clock that a test sets."""

    def __init__(self, now_s: float = 0.0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s


def picture_of(story: Story) -> RunPicture:
    picture = RunPicture(story.run)
    picture.see_all(story.told)
    return picture


def one_step(mismatch: float = 3.1e-5) -> Story:
    story = Story()
    story.created(0)
    story.dispatched(10, 12)
    story.turn(12, "rollout/micro-1/12/0/0", 0, generate_s=1, tool_s=0.1, tokens=5500)
    story.admitted(15, 12, reward_mean=0.53, rollouts=128, masked=3)
    story.trained(17.2, 12, 2, METRICS | {"mismatch_mean": mismatch})
    return story


def printed(picture: RunPicture, progress: Progress | None = None) -> list[str]:
    out = io.StringIO()
    PlainView(Console(file=out, width=40)).update(picture, progress)
    return out.getvalue().splitlines()


def test_a_step_is_one_line_with_its_mismatch() -> None:
    assert printed(picture_of(one_step())) == [
        "step 12    reward 0.530  loss -0.0100  grad 0.800  |Δlogp| 3.1e-05  tokens 5,500  3 of 128 masked  7.2 s"
    ]


def test_a_mismatch_above_its_bound_is_said_to_be() -> None:
    (line,) = printed(picture_of(one_step(mismatch=0.02)))
    assert "|Δlogp| 2.0e-02 ABOVE ITS BOUND 1e-03" in line


def test_each_line_is_printed_once_and_in_the_order_of_time() -> None:
    out, story, picture = io.StringIO(), learning_run(10), RunPicture("micro-1")
    view = PlainView(Console(file=out, width=200))
    for envelope, event in story.told:
        picture.see(envelope, event)
        view.update(picture, None)
    live = out.getvalue().splitlines()
    at_once = printed(picture_of(story))
    assert live == at_once
    assert len(set(live)) == len(live) == 1 + 5 + 10 + 2  # version 0, validations, steps, recoveries
    assert [line[:9] for line in live[:4]] == ["version 0", "version 0", "version 0", "step 0   "]


def test_failures_and_operators_have_lines() -> None:
    story = Story()
    story.attempt(1, "rollout/micro-1/0/0/0", "a")
    story.failed(2, "rollout/micro-1/0/0/0", "engine unreachable")
    act = OperatorActed(action="pause", arguments={"at": "now"}, who="ann@host", reason="disk", update="u1")
    story.tell(3, "operator/micro-1", act)
    assert printed(picture_of(story)) == [
        "failure  rollout/micro-1/0/0/0: infra: engine unreachable",
        "operator  pause (now) by ann@host: disk",
    ]


def test_brackets_in_words_of_others_are_no_markup() -> None:
    story = Story()
    story.failed(2, "rollout/micro-1/0/0/0", "[red]boom[/red] :boom:")
    assert printed(picture_of(story)) == ["failure  rollout/micro-1/0/0/0: infra: [red]boom[/red] :boom:"]


def test_after_a_silence_a_log_says_what_the_run_waits_for_and_not_again_at_once() -> None:
    out, clock = io.StringIO(), Clock()
    view = PlainView(Console(file=out, width=200), clock=clock)
    picture = picture_of(Story())
    for now_s, said in ((10, 0), (29, 0), (31, 1), (45, 1), (62, 1), (600, 1), (640, 2)):
        clock.now_s = now_s
        view.update(picture, PROGRESS)
        assert len(out.getvalue().splitlines()) == said, now_s
    lines = out.getvalue().splitlines()
    assert lines[0].startswith("waits for an operator's resume (before step 3)  0 rollouts in flight")


def test_the_view_fits_its_console() -> None:
    assert isinstance(make_view(Console(file=io.StringIO())), PlainView)
    assert isinstance(make_view(Console(file=io.StringIO(), force_terminal=True)), ScreenView)


@pytest.mark.parametrize("width", [60, 100])
def test_a_terminal_shows_what_goes_on(width: int) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=width, height=50, color_system=None)
    picture = picture_of(learning_run(10, finish=False))
    assert picture.newest_s is not None
    view = ScreenView(console, ui_url="http://127.0.0.1:8233", clock=Clock(picture.newest_s + 2))
    view.update(picture, PROGRESS)
    view.update(picture, PROGRESS)
    view.close()
    view.close()
    shown = out.getvalue()
    for words in (
        "micro-1",
        "paused",
        "10 of 48",
        "10 newest, 10 served",
        "target 0.69",
        "bound 1e-03",
        "an operator's resume",
        "http://127.0.0.1:8233",
        "trainer:a/2",
    ):
        assert words in shown, words
    assert shown.count("step 9     reward") == 1
    assert shown.endswith("\x1b[?25h") or "\x1b[?25h" in shown  # the cursor is back


def test_an_empty_picture_can_be_shown() -> None:
    out = io.StringIO()
    view = ScreenView(Console(file=out, force_terminal=True, width=80), clock=Clock(T0))
    view.update(RunPicture("micro-1"), None)
    view.message("starting services")
    view.close()
    assert "starting services" in out.getvalue()
    assert "not finished" in summary(RunPicture("micro-1"))


def test_the_summary_has_every_figure(tmp_path: Path) -> None:
    story = Story()
    story.created(0)
    story.version_0(9, 125)
    story.validation_opened(10, 0, "main", tasks=4)
    story.validation_closed(20, 0, "main", passed=[4, 0, 0, 0])
    story.dispatched(20, 0, prompts=2)
    story.attempt(20, "rollout/micro-1/0/0/0", "a")
    story.turn(35, "rollout/micro-1/0/0/0", 0, generate_s=12, tool_s=3, tokens=900)
    story.closed(36, "0", 0, Fate.TRAINED)
    story.closed(36, "0", 1, Fate.ABANDONED, "engine unreachable")
    story.admitted(36, 0, 0.5)
    story.trained(40, 0, 4, METRICS)
    story.validation_opened(40, 1, "main", tasks=4)
    story.validation_closed(50, 1, "main", passed=[4, 4, 4, 1])
    story.finished(50, RunEnd.TARGET, 1)
    lines = dict(line.split("  ", 1) for line in summary(picture_of(story), tmp_path / "p.html").splitlines())
    figures = {name.strip(): value.strip() for name, value in lines.items()}
    assert figures["Run"] == "micro-1, reached its target at weight version 1"
    assert figures["pass@4 main"] == "0.250 [0.046, 0.699] (version 0) → 1.000 [0.510, 1.000] (version 1), target 0.69"
    assert figures["Steps"] == "1 of 48, reward 0.500 → 0.500, largest mean |Δlogp| 3.1e-05 (bound 1e-03)"
    assert figures["Warm-up"] == "2 min 05 s (warm-up)"
    assert figures["Reinforcement"] == "40.0 s"
    assert figures["Overhead"].startswith("52.5%: 21.0 s")
    assert figures["Tokens"] == "900 generated, 22 a second of reinforcement"
    assert figures["Prompts"] == "2 dispatched = 1 abandoned + 1 trained"
    assert figures["Recoveries"] == "none"
    assert figures["Page"] == str(tmp_path / "p.html")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0.0 s"),
        (7.24, "7.2 s"),
        (59.96, "1 min 00 s"),
        (185, "3 min 05 s"),
        (3599.6, "1 h 00 min"),
        (7380, "2 h 03 min"),
    ],
)
def test_durations_read_well(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("values", "bars"), [([], ""), ([2.0, 2.0], "▄▄"), ([0, 1], "▁█"), ([9, 0, 7], "▁█"), ([1.0, float("nan")], "▄")]
)
def test_sparklines_span_the_newest_values(values: list[float], bars: str) -> None:
    assert sparkline(values, 2) == bars
