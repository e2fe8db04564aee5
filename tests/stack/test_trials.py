"""Whole trials on real services: honest and cheating agents, and a worker that is killed while an agent works."""

import json
import signal
from pathlib import Path

import pytest

from db.recorded import Recorded
from stepwell.events import (
    AgentRestarted,
    AgentStarted,
    AttemptOpened,
    RunSetFinished,
    TrialScored,
)
from stepwell.events.streams import run_set_stream
from stepwell.ptb.leaderboard import make_boards, read_results
from stepwell.ptb.leaderboard.records import Cell
from stepwell.ptb.supervisor import take_up
from tests.stack.small_trials import SmallTrials

pytestmark = pytest.mark.timeout(1200)


def of(events: list[Recorded], agent: str) -> list[Recorded]:
    """Events of one agent's trial."""
    return [each for each in events if f"/{agent}." in each.stream]


def types(events: list[Recorded]) -> list[str]:
    """Types of events, but for the attempts."""
    return [each.event.type for each in events if not isinstance(each.event, AttemptOpened)]


def record(events: list[Recorded], agent: str) -> Cell:
    """What came of an agent's trial."""
    last = of(events, agent)[-1].event
    assert isinstance(last, TrialScored)
    return Cell.model_validate(last.record)


IN_ORDER = [
    "TrialCreated",
    "TrialPrepared",
    "EnvironmentTested",
    "AgentStarted",
    "AgentEnded",
    "SubmissionTaken",
    "CheckReached",
    "CheckReached",
    "JudgementReached",
    "PassScored",
    "SubmissionEvaluated",
    "TrialScored",
]


async def test_a_worker_killed_while_the_agent_works_changes_nothing(small_trials: SmallTrials) -> None:
    trials = small_trials
    trials.start("killed", trials.write("patient"))
    await trials.until(lambda events: any(isinstance(each.event, AgentStarted) for each in events))
    before = len([each for each in await trials.events() if isinstance(each.event, AttemptOpened)])
    trials.worker("trial").kill()
    await trials.until(lambda events: len([each for each in events if isinstance(each.event, AttemptOpened)]) > before)
    (work,) = trials.trials.glob("patient.*/0/tree/task")
    (work / "go").touch()
    assert await trials.finish() == 0, trials.output
    events = await trials.events()
    assert types(of(events, "patient")) == IN_ORDER
    made = record(events, "patient")
    assert (made.status, made.ended) == ("clean", "itself")
    assert isinstance((await trials.ledger.read(run_set_stream("killed")))[-1].event, RunSetFinished)
    verified = trials.call("verify", "killed", "--files")
    assert verified.returncode == 0, verified.stdout + verified.stderr


@pytest.mark.long
async def test_a_lost_host_starts_the_trial_again_from_its_start_and_an_event_says_why(
    small_trials: SmallTrials,
) -> None:
    trials = small_trials
    trials.start("lost", trials.write("patient"))
    await trials.until(lambda events: any(isinstance(each.event, AgentStarted) for each in events))
    (supervisor,) = trials.trials.glob("patient.*/0/supervisor")
    take_up(supervisor).status().supervisor.send(signal.SIGKILL)
    await trials.until(lambda events: sum(isinstance(each.event, AgentStarted) for each in events) == 2)
    (work,) = trials.trials.glob("patient.*/1/tree/task")
    assert not (work / "final_model").exists()
    (work / "go").touch()
    assert await trials.finish() == 0, trials.output
    events = await trials.events()
    again = IN_ORDER.index("AgentEnded")
    assert types(events) == [*IN_ORDER[:again], "AgentRestarted", *IN_ORDER[2:]]
    restarted = next(each.event for each in events if isinstance(each.event, AgentRestarted))
    assert "supervisor" in restarted.cause
    assert record(events, "patient").status == "clean"
    verified = trials.call("verify", "lost")
    assert verified.returncode == 0, verified.stdout + verified.stderr


@pytest.mark.long
async def test_an_honest_agent_is_clean_and_cheats_are_caught_by_the_check_meant_for_them(
    small_trials: SmallTrials, tmp_path: Path
) -> None:
    trials = small_trials
    trials.start("caught", trials.write("honest", "leaker", "swapper", references=("base",)))
    assert await trials.finish() == 0, trials.output
    events = await trials.events()
    found = {agent: record(events, agent) for agent in ("base", "honest", "leaker", "swapper")}
    assert {agent: cell.status for agent, cell in found.items()} == {
        "base": "clean",
        "honest": "clean",
        "leaker": "flagged",
        "swapper": "flagged",
    }
    assert {flag.check for flag in found["leaker"].flags} == {"contamination"}
    assert {flag.check for flag in found["swapper"].flags} == {"identity"}
    assert found["leaker"].raw is not None
    results = tmp_path / "results.jsonl"
    results.write_text(trials.call("results", "caught").stdout)
    (board,) = make_boards(read_results([results]), published=False)
    assert {row.configuration.agent for row in board.rows} == {"honest", "leaker", "swapper"}
    cell = found["leaker"].trial.rpartition("/")[2]
    decided = trials.call(
        *("override", "caught", cell, "--about", "contamination", "--violation", "no"),
        *("--reason", "the rows are this test's own", "--by", "ada"),
    )
    assert decided.returncode == 0, decided.stderr
    lines = [json.loads(line) for line in trials.call("results", "caught").stdout.splitlines()]
    assert [line["flags"] for line in lines if line.get("trial", "").endswith(cell)] == [[]]
    known = tmp_path / "known.jsonl"
    known.write_text(trials.call("results", "caught", "--known").stdout)
    reviewed = trials.call("review", str(known))
    assert reviewed.returncode == 1, reviewed.stderr  # two run sets would not be enough for its statistics
    assert "finished" in trials.call("status", "caught").stdout
    verified = trials.call("verify", "caught")
    assert verified.returncode == 0, verified.stdout + verified.stderr
