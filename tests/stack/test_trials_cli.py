"""What the commands tell of run sets, and what a person decides, on the real ledger."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from cli.main import main
from db.database import Database
from db.ledger import Ledger
from stepwell.events import RunSetCreated, RunSetFinished, TrialScored
from stepwell.events.base import Event
from stepwell.events.children import Commitment
from stepwell.events.streams import run_set_stream, trial_stream
from stepwell.ptb.trials.fold import fold_trial
from stepwell.ptb.trials.results import record_of
from tests.stack.database import DatabaseUrls
from tests.unit.test_trial_results import CLEAN, RECIPE, judgement, replaced
from tests.unit.test_trial_review import BASIS
from workers.services.addresses import Addresses

CELL = "honest.m.gsm8k.0"
BASIS_OF_M = BASIS.model_copy(update={"base_models": ("m",), "templates": {"m": "template"}, "hours": 2.0})
FLAGGED = replaced(CLEAN[8], judgement("violation"))


async def _write(url: str, run_set: str, trial: Sequence[Event]) -> None:
    database = Database(url, pool_size=1)
    try:
        ledger, actor = Ledger(database), "trial:test/1"
        created = RunSetCreated(
            recipe=json.loads(RECIPE.model_dump_json()),
            recipe_digest=RECIPE.digest,
            cells=[CELL],
            basis=BASIS_OF_M.model_dump(mode="json"),
            digests={},
        )
        await ledger.append(run_set_stream(run_set), [created], expected_seq=0, actor=actor)
        record = record_of(run_set, RECIPE, BASIS_OF_M.key, fold_trial(trial))
        scored = TrialScored(record=record.model_dump(mode="json"))
        await ledger.append(trial_stream(run_set, CELL), [*trial, scored], expected_seq=0, actor=actor)
        heads = Commitment(count=1, heads="h", facts="f")
        await ledger.append(
            run_set_stream(run_set), [RunSetFinished(scored=1, heads=heads)], expected_seq=1, actor=actor
        )
    finally:
        await database.close()


@pytest.fixture(scope="module")
def told(database: DatabaseUrls) -> str:
    """A run set of one trial, in which judges found a violation."""
    asyncio.run(_write(database.appender, "told", FLAGGED))
    return "told"


@pytest.fixture(autouse=True)
def home(services: Addresses, services_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands' home is that of the session's services."""
    monkeypatch.setenv("STEPWELL_HOME", str(services_home))


def test_status_tells_what_each_trial_came_to(told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ptb", "status", told]) == 0
    said = capsys.readouterr().out
    assert "told: 1 scored; finished" in said
    assert f"{CELL}: flagged, 45.00 points; flagged: lookup: most judges found a violation" in said
    assert main(["ptb", "status", "--json"]) == 0
    (run_set,) = [one for one in json.loads(capsys.readouterr().out) if one["run_set"] == told]
    assert [(trial["cell"], trial["phase"]) for trial in run_set["trials"]] == [(CELL, "scored")]


def test_a_decision_needs_a_reason_and_something_to_decide_on(told: str, capsys: pytest.CaptureFixture[str]) -> None:
    decide = ["ptb", "override", told, CELL, "--violation", "no", "--by", "ada"]
    assert main([*decide, "--about", "lookup", "--reason", "no"]) == 2
    assert main([*decide, "--about", "distillation", "--reason", "nobody was asked of it"]) == 2
    assert "has no verdict on distillation" in capsys.readouterr().err


def test_a_decision_stands_beside_the_votes_and_changes_the_results(
    told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def flags() -> list[list[dict[str, str]]]:
        assert main(["ptb", "results", told]) == 0
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert lines[0]["kind"] == "basis"
        return [line["flags"] for line in lines[1:]]

    assert [[flag["check"] for flag in found] for found in flags()] == [["lookup"]]
    decide = ["ptb", "override", told, CELL, "--about", "lookup", "--by", "ada"]
    assert main([*decide, "--violation", "no", "--reason", "the page was a general tutorial"]) == 0
    capsys.readouterr()
    assert flags() == [[]]
    assert main([*decide, "--violation", "yes", "--reason", "it was not: see its address"]) == 0
    capsys.readouterr()
    assert flags() == [[{"check": "lookup", "reason": "ada decided: it was not: see its address"}]]


def test_a_run_set_that_there_is_not_is_named_with_the_nearest(told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ptb", "status", "tld"]) == 2
    assert "no run set 'tld'" in capsys.readouterr().err
    assert main(["ptb", "override", told, "none", "--about", "lookup", "--violation", "no", "--reason", "x" * 10]) == 2
