"""`stepwell audit verify` on a real ledger: what somebody with all rights changed is found and named."""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psycopg
import pytest

from cli.main import main
from db.blobs import BlobStore
from db.database import Database
from db.ledger import Ledger
from db.run_record import read_run
from stepwell.audit.verification import Verification, verify
from stepwell.events import RunCreated, StepAdmitted, VersionCreated
from stepwell.events.envelope import GENESIS, open_envelope, seal
from tests.audited_run import write_run
from tests.book import LedgerBook, failing
from tests.run_plan import EVENTFUL, Plan
from tests.stack.database import DatabaseUrls


@pytest.fixture
async def book(
    ledger: Ledger, blobs: BlobStore, fresh: Callable[[], str], database: DatabaseUrls
) -> AsyncIterator[LedgerBook]:
    """A finished run; what a test makes of it does not stay for the others, who share the database."""
    written, run = LedgerBook(ledger, blobs.put), fresh()
    await write_run(written, run, EVENTFUL)
    yield written
    with psycopg.connect(database.migrator) as owner:
        owner.execute("ALTER TABLE events DISABLE TRIGGER events_stand")
        owner.execute("ALTER TABLE blobs DISABLE TRIGGER blobs_stand")
        owner.execute("DELETE FROM events WHERE split_part(stream, '/', 2) = %s", [run])
        owner.execute("DELETE FROM blobs WHERE place = 'postgres' AND encode(sha256(data), 'hex') <> digest")
        owner.execute("ALTER TABLE events ENABLE TRIGGER events_stand")
        owner.execute("ALTER TABLE blobs ENABLE TRIGGER blobs_stand")


@pytest.fixture
def auditor(connections: Database, blobs: BlobStore) -> Callable:
    """Reads and verifies a run."""

    async def of(run: str) -> Verification:
        record = await read_run(connections, blobs, run)
        assert record is not None
        return verify(record)

    return of


def tamper(database: DatabaseUrls, *statements: tuple[str, list]) -> None:
    """Changes the stores as their owner, with the triggers off, and puts the triggers back."""
    with psycopg.connect(database.migrator) as owner:
        owner.execute("ALTER TABLE events DISABLE TRIGGER events_stand")
        owner.execute("ALTER TABLE blobs DISABLE TRIGGER blobs_stand")
        for statement, values in statements:
            assert owner.execute(statement, values).rowcount > 0
        owner.execute("ALTER TABLE events ENABLE TRIGGER events_stand")
        owner.execute("ALTER TABLE blobs ENABLE TRIGGER blobs_stand")


async def test_a_run_as_it_was_appended_verifies(book: LedgerBook, auditor: Callable) -> None:
    verification = await auditor(book.run)
    assert failing(verification) == {}
    assert (verification.streams, verification.events) == (
        len(book.events),
        sum(len(events) for events in book.events.values()),
    )
    unchecked = {result.rule for result in verification.results if result.checked == 0}
    assert unchecked <= {"ancestry", "projections"}, "it is no fork; nothing keeps the tables, unless another test did"


async def test_a_run_that_is_not_finished_verifies(
    ledger: Ledger, blobs: BlobStore, fresh: Callable[[], str], auditor: Callable
) -> None:
    run = fresh()
    await write_run(LedgerBook(ledger, blobs.put), run, Plan(finish=False))
    verification = await auditor(run)
    assert (verification.finished, verification.holds) == (None, True)


async def test_a_run_is_not_confused_with_one_whose_name_it_begins(
    book: LedgerBook, ledger: Ledger, blobs: BlobStore, auditor: Callable
) -> None:
    longer = LedgerBook(ledger, blobs.put)
    await write_run(longer, f"{book.run}0", Plan(steps=1))
    assert (await auditor(book.run)).streams == len(book.events)


async def test_a_changed_byte_is_named_with_its_event(
    book: LedgerBook, database: DatabaseUrls, auditor: Callable
) -> None:
    stream = f"rollout/{book.run}/1/1/1"
    change = "UPDATE events SET exact = set_byte(exact, 30, get_byte(exact, 30) # 1) WHERE stream = %s AND seq = 1"
    tamper(database, (change, [stream]))
    found = failing(await auditor(book.run))
    assert found["chains"].startswith(f"{stream} #1: {stream} #1: the bytes hash to ")
    assert f"says that {stream} ends at #3, it ends at #0" in found["commitments"]


@pytest.mark.parametrize("kind", ["operator", "health", "engine", "weights"])
async def test_a_changed_byte_in_a_stream_that_no_parent_commits_to_is_named_too(
    kind: str, book: LedgerBook, database: DatabaseUrls, auditor: Callable
) -> None:
    stream = next(name for name in book.events if name.startswith(f"{kind}/{book.run}"))
    at = len(book.events[stream]) - 1
    change = "UPDATE events SET exact = set_byte(exact, 30, get_byte(exact, 30) # 1) WHERE stream = %s AND seq = %s"
    tamper(database, (change, [stream, at]))
    assert failing(await auditor(book.run))["chains"].startswith(f"{stream} #{at}: ")


async def test_a_stream_cut_short_at_its_end_breaks_its_parents_commitment(
    book: LedgerBook, database: DatabaseUrls, auditor: Callable
) -> None:
    stream = f"rollout/{book.run}/0/0/1"
    tamper(database, ("DELETE FROM events WHERE stream = %s AND seq = 3", [stream]))
    found = failing(await auditor(book.run))
    assert "chains" not in found
    assert f"says that {stream} ends at #3, it ends at #2" in found["commitments"]


async def test_a_score_rewritten_with_a_fitting_chain_is_found_by_commitment_and_verdict(
    book: LedgerBook, ledger: Ledger, database: DatabaseUrls, auditor: Callable
) -> None:
    stream = f"rollout/{book.run}/0/0/1"
    statements, prev = [], GENESIS
    for recorded in await ledger.read(stream):
        old = open_envelope(recorded.envelope.exact_bytes())
        body = {**old.body, "score": 1.0} if old.type == "RolloutGraded" else old.body
        forged = seal(
            stream=stream,
            seq=old.seq,
            key=old.key,
            type=old.type,
            schema=old.schema,
            actor=old.actor,
            body=body,
            prev_hash=prev,
            time=old.time,
        )
        prev = forged.hash
        update = "UPDATE events SET exact = %s, hash = %s WHERE stream = %s AND seq = %s"
        statements.append((update, [forged.exact_bytes(), forged.hash, stream, old.seq]))
    tamper(database, *statements)
    found = failing(await auditor(book.run))
    assert "chains" not in found
    assert f"says that {stream} ends with " in found["commitments"]
    assert "score 1.0, timed out False; its verdict says 0.0" in found["scores"]


async def test_a_whole_stream_that_is_gone_is_missed(
    book: LedgerBook, database: DatabaseUrls, auditor: Callable
) -> None:
    tamper(database, ("DELETE FROM events WHERE stream = %s", [f"prompt/{book.run}/1/1"]))
    found = failing(await auditor(book.run))
    assert f"names the stream prompt/{book.run}/1/1" in found["commitments"]
    assert f"dispatched prompt/{book.run}/1/1, which does not exist" in found["fates"]


async def test_a_blob_that_is_gone_or_changed_is_named_by_the_event_that_names_it(
    book: LedgerBook, blobs: BlobStore, database: DatabaseUrls, auditor: Callable
) -> None:
    created = next(event for event in book.events[f"run/{book.run}"] if isinstance(event, RunCreated))
    admitted = next(event for event in book.events[f"run/{book.run}"] if isinstance(event, StepAdmitted))
    version = next(event for event in book.events[f"weights/{book.run}"] if isinstance(event, VersionCreated))
    weights = json.loads(await blobs.get(version.export))["model.safetensors"]
    tamper(
        database,
        ("UPDATE blobs SET data = set_byte(data, 3, 0) WHERE digest = %s", [created.task_set]),
        ("DELETE FROM blobs WHERE digest = %s", [admitted.manifest]),
        ("DELETE FROM blobs WHERE digest = %s", [weights]),
    )
    results = {result.rule: result for result in (await auditor(book.run)).results}
    said = sorted(str(finding).partition(". ")[0] for finding in results["blobs"].findings)
    assert [line[: len(f"run/{book.run} #0")] for line in said[:1]] == [f"run/{book.run} #0"]
    assert f"blob {created.task_set} is corrupt" in said[0]
    assert any(line.endswith(f"blob {admitted.manifest} is not stored") for line in said)
    assert f"weights/{book.run} #0: blob {weights} is not stored" in said
    assert len(said) == 3


async def test_a_run_whose_first_event_does_not_verify_is_still_audited(
    book: LedgerBook, database: DatabaseUrls, auditor: Callable
) -> None:
    tamper(database, ("UPDATE events SET hash = repeat('0', 64) WHERE stream = %s AND seq = 0", [f"run/{book.run}"]))
    found = failing(await auditor(book.run))
    assert found["chains"].startswith(f"run/{book.run} #0")
    assert "was not dispatched" in found["fates"]


async def test_a_run_that_does_not_exist_has_no_record(connections: Database, blobs: BlobStore) -> None:
    assert await read_run(connections, blobs, "no-such-run") is None


@pytest.fixture
def command(services_home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """`stepwell audit verify …` on the session's services."""
    monkeypatch.setenv("STEPWELL_HOME", str(services_home))
    return lambda *words: main(["audit", "verify", *words])


def test_the_command_prints_a_line_a_rule_and_exits_0(
    book: LedgerBook, command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(book.run) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"run {book.run} (ended: max_steps), {len(book.events)} streams")
    assert [line.split()[:2] for line in lines[2:5]] == [["ok", "chains"], ["ok", "ancestry"], ["ok", "commitments"]]
    assert lines[-1] == "every rule holds"
    assert (
        "prompts of training: 7 dispatched (1 in place of failed ones) = 1 quarantined + 1 skipped + 5 trained" in lines
    )
    assert "        step 0 · prompt 1: quarantined: the task is broken" in lines
    assert "prompts of validation: 4 dispatched = 4 validated" in lines
    assert "trained rollouts are as long as generated ones in tokens (KS 0.00)" in lines
    assert command(book.run, "--json") == 0
    ledger = json.loads(capsys.readouterr().out)["ledger"]
    training = ledger["training"]
    assert training["dispatched"] == training["open"] + sum(training["fates"].values()) == 7
    assert [compared["is_biased"] for compared in ledger["lengths"]] == [False, False]


def test_the_command_names_the_first_event_that_breaks_and_exits_1(
    book: LedgerBook, database: DatabaseUrls, command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    stream = f"rollout/{book.run}/0/1/0"
    tamper(database, ("DELETE FROM events WHERE stream = %s AND seq = 1", [stream]))
    assert command(book.run) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split()[:2] == ["failed", "chains"]
    assert lines[3].strip() == f"{stream} #1: the event is missing: the next one stored is #2"
    assert lines[-2].endswith(f"Look first at {stream}:")
    assert command(book.run, "--json") == 1
    said = json.loads(capsys.readouterr().out)
    assert said["holds"] is False
    assert said["results"][0]["findings"][0]["seq"] == 1


def test_the_command_exits_2_for_an_unknown_run_and_names_the_nearest(
    book: LedgerBook, command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(book.run + "x") == 2
    said = capsys.readouterr().err
    assert f"no run '{book.run}x': did you mean" in said
