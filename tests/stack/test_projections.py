"""Tables for reading say what the events say, however they were cut into portions, and again after a rebuild."""

import argparse
import asyncio
import json
from collections.abc import AsyncIterator

import psycopg
import pytest
import pytest_asyncio
from psycopg.rows import dict_row

from cli import rebuild
from db.database import Database
from db.errors import DatabaseUnavailable
from db.ledger import Ledger
from db.projections.projector import Projector
from stepwell.agent.protocol import StopReason
from stepwell.events import (
    AttemptOpened,
    GroupClosed,
    GroupOpened,
    OperatorActed,
    RolloutEnded,
    RolloutFailed,
    RolloutGraded,
    RolloutRestarted,
    RunCreated,
    RunFinished,
    StepAdmitted,
    StepCompleted,
    StepDispatched,
    StepTrained,
    TurnRecorded,
    ValidationOpened,
    ValidationRecorded,
    VersionCreated,
)
from stepwell.events.base import Event
from stepwell.events.children import Commitment
from stepwell.events.group_closed import Fate
from stepwell.events.numbers import WeightDigests
from stepwell.events.run_finished import RunEnd
from tests.stack.database import DatabaseUrls

TABLES = {"runs": "run", "steps": "step", "validations": "version", "prompts": "scope", "rollouts": "sample"}
NONE = Commitment(count=0, heads="", facts="")
DIGESTS = WeightDigests(master="m", exported="e", optimiser="o")


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def reading(database: DatabaseUrls) -> AsyncIterator[Database]:
    """Connections of the projector's role."""
    opened = Database(database.projector, pool_size=4)
    yield opened
    await opened.close()


def turn(number: int, generate_s: float) -> TurnRecorded:
    return TurnRecorded(
        turn=number,
        epoch=0,
        payload="p",
        version=0,
        prompt_tokens=10,
        generated_tokens=7,
        tool="view",
        tree="t",
        engine="e",
        generate_s=generate_s,
        tool_s=0.1,
    )


def story(run: str) -> list[tuple[str, str, list[Event]]]:
    """One training step and a validation: stream, actor, events, in the order in which they happen."""
    prompt, good, lost = f"prompt/{run}/0/0", f"rollout/{run}/0/0/0", f"rollout/{run}/0/0/1"
    control, sandbox = "control:c", "sandbox:s"
    ended = RolloutEnded(
        reason=StopReason.FINISHED,
        epoch=0,
        turns=2,
        generated_tokens=14,
        total_tokens=60,
        changed="c",
        content="n",
        tree="t",
        verdict_key="v",
    )
    return [
        (f"run/{run}", control, [RunCreated(recipe={"name": "micro"}, recipe_digest="d", task_set="s")]),
        (
            f"weights/{run}",
            "trainer:t",
            [
                VersionCreated(
                    origin="warm-up",
                    digests=DIGESTS,
                    export="x",
                    probe_ids=[1],
                    probe=[-1.0],
                    metrics={},
                    environment={},
                    duration_s=1.0,
                )
            ],
        ),
        (f"run/{run}", control, [StepDispatched(step=0, version=0, tasks=["t0"], settings={})]),
        (prompt, control, [GroupOpened(task="t0", task_id="task-0", version=0, samples=2)]),
        (good, sandbox, [AttemptOpened(attempt="a", worker="w", resumed_at=0)]),
        (lost, sandbox, [AttemptOpened(attempt="a", worker="w", resumed_at=0)]),
        (good, sandbox, [turn(0, 0.1), turn(1, 0.2)]),
        (good, sandbox, [AttemptOpened(attempt="b", worker="w", resumed_at=2)]),
        (good, sandbox, [RolloutRestarted(epoch=1, turn=0, expected="x", found="y"), turn(2, 0.3)]),
        (
            good,
            sandbox,
            [ended, RolloutGraded(verdict_key="v", score=1.0, verdict_head="h", timed_out=False, reused=False)],
        ),
        (lost, sandbox, [RolloutFailed(failure="infra", cause="engine died")]),
        (prompt, control, [GroupClosed(fate=Fate.TRAINED, scores=[1.0, None], children=[], rollout_facts="f")]),
        (
            f"run/{run}",
            control,
            [
                StepAdmitted(
                    step=0, manifest="m", group_facts="g", group_heads=NONE, rollouts=2, masked=1, reward_mean=1.0
                )
            ],
        ),
        (
            f"weights/{run}",
            "trainer:t",
            [
                StepTrained(
                    step=0,
                    parent=0,
                    version=1,
                    manifest="m",
                    digests=DIGESTS,
                    export="x",
                    probe=[-1.0],
                    environment={},
                    metrics={
                        "loss": -0.25,
                        "grad_norm": 3.5,
                        "mismatch_mean": 1e-5,
                        "mismatch_max": 5e-5,
                        "entropy": 0.7,
                    },
                    timings_s={"model": 2.0},
                    duration_s=2.5,
                )
            ],
        ),
        (
            f"run/{run}",
            control,
            [StepCompleted(step=0, version=1, weights_digest="e", weights_seq=1, weights_head="h")],
        ),
        (
            f"validation/{run}/v1-main",
            control,
            [ValidationOpened(version=1, weights_digest="e", dataset="main", tasks=["a", "b"], samples=4)],
        ),
        (
            f"run/{run}",
            control,
            [
                ValidationRecorded(
                    version=1, dataset="main", pass_1=0.5, pass_k=0.75, k=4, stream_head="h", validation_facts="f"
                )
            ],
        ),
        (
            f"operator/{run}",
            control,
            [OperatorActed(action="stop", arguments={"at": "step"}, who="me", reason="seen enough", update="u")],
        ),
        (f"run/{run}", control, [RunFinished(end=RunEnd.STOPPED, version=1, cause="seen enough")]),
    ]


async def tell(ledger: Ledger, events: list[tuple[str, str, list[Event]]]) -> None:
    for stream, actor, appended in events:
        head = await ledger.head(stream)
        await ledger.append(stream, appended, expected_seq=head.seq + 1 if head else 0, actor=actor)


def rows_of(url: str, run: str) -> dict[str, list[dict]]:
    with psycopg.connect(url, row_factory=dict_row) as connection:
        return {
            table: connection.execute(f"SELECT * FROM {table} WHERE run = %s ORDER BY {order}", [run]).fetchall()
            for table, order in TABLES.items()
        }


def fields(row: dict, *names: str) -> tuple:
    return tuple(row[name] for name in names)


async def test_rows_say_what_the_events_say(database: DatabaseUrls, reading: Database, ledger: Ledger, fresh) -> None:
    run = fresh()
    await tell(ledger, story(run))
    await Projector(reading).catch_up()
    rows = rows_of(database.auditor, run)
    (of_run,), (step,), (validation,), (prompt,) = (rows[name] for name in ("runs", "steps", "validations", "prompts"))
    assert fields(of_run, "recipe_name", "recipe_digest", "state", "cause", "operator") == (
        "micro",
        "d",
        "stopped",
        "seen enough",
        "stop",
    )
    assert fields(of_run, "dispatched_steps", "completed_steps", "version") == (1, 1, 1)
    assert of_run["created_at"] < of_run["finished_at"]
    assert fields(step, "step", "generated_by", "prompts", "rollouts", "masked", "reward_mean", "version") == (
        0,
        0,
        1,
        2,
        1,
        1.0,
        1,
    )
    assert fields(step, "loss", "grad_norm", "mismatch_mean", "mismatch_max", "train_s") == (
        -0.25,
        3.5,
        1e-5,
        5e-5,
        2.5,
    )
    assert step["metrics"]["entropy"] == 0.7
    assert step["dispatched_at"] < step["admitted_at"] < step["trained_at"] < step["completed_at"]
    assert fields(validation, "version", "dataset", "tasks", "samples", "pass_1", "pass_k", "k") == (
        1,
        "main",
        2,
        4,
        0.5,
        0.75,
        4,
    )
    assert fields(prompt, "scope", "prompt", "task", "task_id", "samples", "fate") == (
        "0",
        0,
        "t0",
        "task-0",
        2,
        "trained",
    )
    good, lost = rows["rollouts"]
    assert fields(good, "attempts", "restarts", "recorded_turns", "recorded_tokens", "generate_us", "tool_us") == (
        2,
        1,
        3,
        21,
        600_000,
        300_000,
    )
    assert fields(good, "end_reason", "turns", "generated_tokens", "total_tokens", "score", "failure") == (
        "finished",
        2,
        14,
        60,
        1.0,
        None,
    )
    assert fields(lost, "attempts", "recorded_turns", "score", "failure", "cause") == (
        1,
        0,
        None,
        "infra",
        "engine died",
    )


@pytest.mark.parametrize("portion", [1, 2, 5, 1000])
async def test_rows_kept_up_as_events_come_are_those_of_a_rebuild(
    database: DatabaseUrls, reading: Database, ledger: Ledger, fresh, portion: int
) -> None:
    run = fresh()
    projector = Projector(reading, portion=portion)
    for part in story(run):
        await tell(ledger, [part])
        await projector.catch_up()
    kept = rows_of(database.auditor, run)
    applied = await Projector(reading).rebuild()
    assert rows_of(database.auditor, run) == kept
    assert applied >= sum(len(events) for _, _, events in story(run))
    assert all(kept.values())


async def test_projectors_and_a_rebuild_at_once_apply_each_event_once(
    database: DatabaseUrls, reading: Database, ledger: Ledger, fresh
) -> None:
    run = fresh()
    projectors = [Projector(reading, portion=2) for _ in range(3)]
    telling = asyncio.create_task(tell(ledger, story(run)))
    while not telling.done():
        await asyncio.gather(*(projector.catch_up() for projector in projectors))
    await telling
    await asyncio.gather(projectors[0].catch_up(), projectors[1].rebuild(), projectors[2].catch_up())
    await projectors[0].catch_up()
    good, lost = rows_of(database.auditor, run)["rollouts"]
    assert fields(good, "attempts", "restarts", "recorded_turns", "recorded_tokens") == (2, 1, 3, 21)
    assert fields(lost, "attempts", "recorded_turns") == (1, 0)


async def test_text_that_postgres_cannot_hold_does_not_stop_the_projector(
    database: DatabaseUrls, reading: Database, ledger: Ledger, fresh
) -> None:
    run = fresh()
    failed = RolloutFailed(failure="infra", cause="a\0b")
    await ledger.append(f"rollout/{run}/0/0/0", [failed], expected_seq=0, actor="sandbox:s")
    await Projector(reading).catch_up()
    assert rows_of(database.auditor, run)["rollouts"][0]["cause"] == "a\ufffdb"


async def test_a_projector_that_is_up_to_date_has_nothing_to_do(reading: Database) -> None:
    projector = Projector(reading)
    await projector.catch_up()
    assert await projector.catch_up() == 0


async def test_following_picks_up_what_is_appended(
    database: DatabaseUrls, reading: Database, ledger: Ledger, fresh
) -> None:
    run = fresh()
    following = asyncio.create_task(Projector(reading).follow(interval_s=0.01))
    await tell(ledger, story(run)[:1])
    for _ in range(500):
        if rows_of(database.auditor, run)["runs"]:
            break
        await asyncio.sleep(0.01)
    following.cancel()
    with pytest.raises(asyncio.CancelledError):
        await following
    assert rows_of(database.auditor, run)["runs"][0]["state"] == "running"


async def test_a_role_that_may_not_write_the_tables_is_told_so(connections: Database, ledger: Ledger, fresh) -> None:
    await tell(ledger, story(fresh())[:1])
    with pytest.raises(DatabaseUnavailable, match="lacks a right"):
        await Projector(connections).catch_up()


@pytest.fixture
def environment(services, database: DatabaseUrls, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The services' addresses, as an operator of external ones gives them."""
    monkeypatch.setenv("STEPWELL_DATABASE_URL", database.auditor)
    monkeypatch.setenv("STEPWELL_DATABASE_URL_PROJECTOR", database.projector)
    monkeypatch.setenv("STEPWELL_S3_ENDPOINT", services.bucket.endpoint)
    monkeypatch.setenv("STEPWELL_TEMPORAL_ADDRESS", "127.0.0.1:1")
    return monkeypatch


def rebuild_command(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    rebuild.add_parser(parser.add_subparsers())
    return rebuild.run(parser.parse_args(["rebuild", *arguments]))


@pytest.mark.usefixtures("environment")
def test_the_command_says_how_many_events_it_applied(capsys: pytest.CaptureFixture[str]) -> None:
    assert rebuild_command("--json") == 0
    assert set(json.loads(capsys.readouterr().out)) == {"events", "duration_s"}
    assert rebuild_command() == 0
    assert "events applied in" in capsys.readouterr().out


def test_the_command_fails_with_what_to_do_when_no_database_answers(
    environment: pytest.MonkeyPatch, unused_tcp_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    environment.setenv("STEPWELL_DATABASE_URL_PROJECTOR", f"postgresql://a:b@127.0.0.1:{unused_tcp_port}/c")
    assert rebuild_command() == 1
    assert "no connection to the database" in capsys.readouterr().err
