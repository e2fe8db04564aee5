"""`stepwell audit retrain` and `history` on a real run: continued as new, with workflows below it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.main import main

RUN = "undisturbed"


@pytest.fixture
def command(undisturbed: dict[str, object], services_home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """`stepwell audit ACTION undisturbed …`."""
    monkeypatch.setenv("STEPWELL_HOME", str(services_home))
    return lambda action, *words: main(["audit", action, RUN, *words])


def test_every_step_is_trained_again_to_the_same_digest(
    undisturbed: dict[str, object], command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("retrain", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["holds"], [step["outcome"] for step in said["steps"]]) == (True, ["equal", "equal"])
    digests = [step["computed"]["exported"] for step in said["steps"]]
    assert digests == [undisturbed["version 1"], undisturbed["version 2"]]


def test_a_sample_of_steps_is_drawn_by_its_seed(
    command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("retrain", "--sample", "1", "--seed", "3") == 0
    assert "run undisturbed: 1 steps, every weight version equal to the bit" in capsys.readouterr().out


def test_a_seed_without_a_sample_is_refused(command: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        command("retrain", "--seed", "3")
    assert refused.value.code == 2
    assert "--seed does nothing without --sample" in capsys.readouterr().err


def test_histories_of_all_its_workflows_are_archived_when_it_has_ended_and_replay(
    command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("history", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    closed = sorted((each["kind"], each["status"]) for each in said["histories"])
    assert closed == [
        *[("PromptGroup", "completed")] * 5,
        ("TrainingRun", "completed"),
        *[("TrainingRun", "continued_as_new")] * 1,
        ("Validation", "completed"),
    ]
    assert said["missing"] == ""
    assert all(each["replays"] for each in said["histories"])
