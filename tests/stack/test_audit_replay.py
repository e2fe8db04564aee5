"""`stepwell audit replay` on real ledgers: a run of the command, and runs that a test writes and changes."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.main import main
from db.blobs import BlobStore
from db.database import Database
from db.ledger import Ledger
from db.objects import ObjectStore
from db.step_record import RunSteps
from stepwell.audit.replaying.difference import Difference
from stepwell.audit.replaying.replay import replay
from stepwell.audit.replaying.rows import row_differences
from stepwell.events import GroupClosed
from tests.audited_run import write_run
from tests.book import LedgerBook, Told
from tests.run_plan import EVENTFUL
from tests.stack.database import DatabaseUrls
from workers.services.addresses import Addresses


@pytest.fixture
def command(services_home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """`stepwell audit replay …` on the session's services."""
    monkeypatch.setenv("STEPWELL_HOME", str(services_home))
    return lambda *words: main(["audit", "replay", *words])


@pytest.fixture
async def eventful(ledger: Ledger, blobs: BlobStore, fresh: Callable[[], str]) -> str:
    """A run in which much happened."""
    run = fresh()
    await write_run(LedgerBook(ledger, blobs.put), run, EVENTFUL)
    return run


@pytest.fixture
async def changed(ledger: Ledger, blobs: BlobStore, fresh: Callable[[], str]) -> str:
    """A run of which one group says another score than its rollout has."""
    run = fresh()
    lie = Told(GroupClosed, {"scores": [1.0, 1.0, 0.0]}, where=f"{run}/1/0")
    await write_run(LedgerBook(ledger, blobs.put, lie), run)
    return run


async def test_every_step_of_a_real_run_is_equal_to_the_byte(
    undisturbed: dict[str, object], services: Addresses, database: DatabaseUrls
) -> None:
    connections, objects = Database(database.auditor), ObjectStore(services.bucket)
    try:
        steps = await RunSteps.open(Ledger(connections), BlobStore(connections, objects), "undisturbed")
        assert steps is not None
        assert steps.admitted == [0, 1]
        for step in steps.admitted:
            record = await steps.read(step)
            rows: list[Difference] = []
            for group in record.groups:
                rows += row_differences(step, group, await steps.payloads(group))
            found = replay(record, steps.recipe, rows)
            assert found.differences == ()
            assert (found.version, found.rollouts) == (0, 8)
            turns = [turn for group in record.groups for rollout in group.rollouts for turn in rollout.turns]
            assert len(turns) > found.rollouts, "there are rollouts of several turns"
            assert record.batch is not None
    finally:
        await objects.close()
        await connections.close()


def test_the_command_replays_steps_in_processes_of_their_own(
    eventful: str, command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(eventful, "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["equal"], [step["step"] for step in said["steps"]]) == (True, [0, 1, 2])
    assert said["steps"][0]["fates"] == {"trained": 2, "quarantined": 1}


def test_the_command_locates_what_was_changed(
    changed: str, command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(changed, "--step", "0") == 0
    assert "1 steps, every batch equal to the byte" in capsys.readouterr().out
    assert command(changed, "--step", "1") == 1
    said = capsys.readouterr().out
    assert "step    1  differs" in said
    where = f"step 1, group 0, rollout/{changed}/1/0/1"
    assert f"Look first at {where}: scores in GroupClosed is 1.0, computed is 0.0" in said


def test_a_run_or_a_step_that_there_is_not_is_a_usage_error(
    eventful: str, command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(f"{eventful}x") == 2
    assert f"no run '{eventful}x'" in capsys.readouterr().err
    assert command(eventful, "--step", "5..6") == 2
    assert "step 5..6 is not admitted in this run: steps 0 to 2 are" in capsys.readouterr().err
