"""What operators type: what it becomes, and what is refused before anything is sent."""

import argparse
import json
import re
from pathlib import Path
from typing import get_args

import pytest

from cli import operate
from cli.main import main
from cli.operator_notes import LIMITS, BadArgument, note_of
from stepwell.contracts.operators import (
    GateNote,
    LimitNote,
    OperatorNote,
    PauseNote,
    SettingNote,
    SkipNote,
    StopNote,
)
from stepwell.events.operator_acted import Action
from stepwell.nearest_names import did_you_mean
from stepwell.operators.fold import NOTES
from stepwell.recipe.live import LIVE
from stepwell.recipe.sections import LimitSection


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    operate.add_parser(parser.add_subparsers())
    return parser.parse_args(words)


def note(*words: str) -> OperatorNote:
    arguments = parsed(*words)
    return note_of(arguments.action, arguments)


def test_there_is_a_verb_for_each_act_that_the_ledger_knows() -> None:
    assert {verb.action for verb in operate.VERBS} == set(get_args(Action))


def test_each_limit_of_a_recipe_can_be_moved() -> None:
    assert set(LIMITS) == set(LimitSection.model_fields)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("pause r --reason x", PauseNote(reason="x", at="now")),
        ("pause r --reason x --at step", PauseNote(reason="x", at="step")),
        ("resume r", OperatorNote()),
        ("resume r --reason x", OperatorNote(reason="x")),
        ("drain r --reason x", OperatorNote(reason="x")),
        ("stop r --reason x", StopNote(reason="x", at="step")),
        ("stop r --reason x --at validation", StopNote(reason="x", at="validation")),
        ("skip r 3 0 --reason x", SkipNote(reason="x", step=3, prompt=0)),
        ("limit r hours=12 --reason x", LimitNote(reason="x", limit="hours", value=12.0)),
        ("limit r generated_tokens=2e6 --reason x", LimitNote(reason="x", limit="generated_tokens", value=2e6)),
        ("limit r steps=none --reason x", LimitNote(reason="x", limit="steps", value=None)),
        ("limit r steps=None --reason x", LimitNote(reason="x", limit="steps", value=None)),
        ("approve r publish/3 --reason x", GateNote(reason="x", gate="publish/3")),
        ("approve r validation/0 --reason x", GateNote(reason="x", gate="validation/0")),
        ("reject r band/mask_rate/12 --reason x", GateNote(reason="x", gate="band/mask_rate/12")),
        ("reject r smaller/7 --reason x", GateNote(reason="x", gate="smaller/7")),
        (
            "set r optimiser.learning_rate=1e-4 --reason x",
            SettingNote(reason="x", key="optimiser.learning_rate", value=1e-4),
        ),
        ("set r run.max_staleness=1 --reason x", SettingNote(reason="x", key="run.max_staleness", value=1)),
    ],
)
def test_words_become_the_argument_of_the_update(words: str, wanted: OperatorNote) -> None:
    found = note(*words.split())
    assert type(found) is type(wanted)
    assert found == wanted


BAD: list[tuple[str, str]] = [
    ("skip r one 0 --reason x", "STEP is 'one': wanted a whole number from 0"),
    ("skip r 1 1.5 --reason x", "PROMPT is '1.5': wanted a whole number from 0"),
    ("limit r hour=3 --reason x", "no limit 'hour': did you mean 'hours'? there are steps, hours, gpu_hours"),
    ("limit r hours --reason x", "'hours': wanted NAME=VALUE"),
    ("limit r hours= --reason x", "'hours=': wanted NAME=VALUE"),
    ("limit r hours=long --reason x", "hours = long: wanted a number"),
    ("limit r hours=nan --reason x", "hours = nan: wanted a number"),
    ("limit r hours=0 --reason x", "hours = 0: Input should be greater than 0, or none"),
    ("limit r steps=1.5 --reason x", "steps = 1.5: Input should be a valid integer"),
    ("set r optimiser.learning_rat=1 --reason x", "cannot be set in a run (did you mean"),
    ("set r run.seed=1 --reason x", "'run.seed' cannot be set in a run"),
    ("set r optimiser.learning_rate=fast --reason x", "optimiser.learning_rate = fast: wanted a number"),
    ("set r failures.step_timeout_s=inf --reason x", "failures.step_timeout_s = inf: wanted a number"),
    ("set r optimiser.learning_rate=-1 --reason x", "optimiser.learning_rate = -1"),
    ("set r run.max_staleness=0.5 --reason x", "run.max_staleness = 0.5"),
    ("set r run.max_staleness=7 --reason x", "run.max_staleness = 7"),
    ("approve r publsh/3 --reason x", "no gate 'publsh/3': did you mean 'publish'? there are publish/VERSION"),
    ("approve r publish --reason x", "no gate 'publish': wanted publish/VERSION"),
    ("approve r publish/new --reason x", "no gate 'publish/new': wanted publish/VERSION"),
    ("approve r band/rewards/3 --reason x", "no gate 'band/rewards/3': did you mean 'reward'? wanted band/METRIC"),
    ("approve r limit/hours --reason x", "limit/hours is a limit: move it with `stepwell limit RUN hours=VALUE`"),
]


@pytest.mark.parametrize(("words", "part"), BAD, ids=[words for words, _ in BAD])
def test_what_cannot_be_asked_says_what_can(words: str, part: str) -> None:
    with pytest.raises(BadArgument) as caught:
        note(*words.split())
    assert part in str(caught.value)


def test_what_cannot_be_asked_is_a_usage_error_and_nothing_is_started_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STEPWELL_HOME", str(tmp_path))
    assert main(["limit", "r", "hours=long", "--reason", "x"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("stepwell limit: hours = long")
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", [verb.action for verb in operate.VERBS if verb.needs_reason])
def test_a_reason_must_be_given(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    rest = {"skip": ["1", "2"], "limit": ["hours=1"], "set": ["run.max_staleness=1"]}.get(verb, [])
    rest = ["publish/1"] if verb in ("approve", "reject") else rest
    with pytest.raises(SystemExit) as caught:
        parsed(verb, "r", *rest)
    assert caught.value.code == 2
    assert "--reason" in capsys.readouterr().err


def documented() -> list[tuple[str, str]]:
    """Updates with the JSON that the page on operating gives for them."""
    page = (Path(__file__).parents[2] / "docs" / "operating.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[a-z`, ]+) \| `(\{.*?\})`", page, re.MULTILINE)
    return [(action, data) for names, data in rows for action in re.findall(r"`([a-z]+)`", names)]


def test_the_page_on_operating_gives_the_argument_of_each_update() -> None:
    assert {action for action, _ in documented()} == set(get_args(Action))


@pytest.mark.parametrize(("action", "data"), documented())
def test_an_argument_in_the_page_on_operating_is_one(action: Action, data: str) -> None:
    given = NOTES[action].model_validate_json(data)
    assert given.reason
    assert json.loads(data).keys() == NOTES[action].model_fields.keys()


def test_the_page_on_operating_names_each_command_and_each_key_that_can_be_set() -> None:
    page = (Path(__file__).parents[2] / "docs" / "operating.md").read_text(encoding="utf-8")
    assert [verb.action for verb in operate.VERBS if f"| `stepwell {verb.action} RUN" not in page] == []
    assert [key for key in LIVE if f"`{key}`" not in page] == []


@pytest.mark.parametrize(
    ("name", "most", "wanted"),
    [
        ("micro-2", 1, "did you mean 'micro-1'?"),
        ("micro-2", 2, "did you mean 'micro-1' or 'micro-10'?"),
        ("zebra", 1, ""),
    ],
)
def test_the_nearest_names_are_offered(name: str, most: int, wanted: str) -> None:
    assert did_you_mean(name, ["smollm2-1", "micro-1", "micro-10"], most=most) == wanted
