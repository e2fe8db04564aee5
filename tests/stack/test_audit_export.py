"""A run out of the real stores: signed, anchored, exported, checked without Stepwell, and payloads deleted for good."""

import json
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from activities.seals import Sealer
from activities.stores import Stores
from cli.main import main
from db.blobs import BlobStore
from db.database import Database
from db.ledger import Ledger
from db.projections.projector import Projector
from db.run_record import read_run
from stepwell.audit.verification import verify
from stepwell.events import HeadSigned, KeyDeclared, TurnRecorded
from stepwell.events.streams import seal_stream
from stepwell.signing import SigningKeys
from tests.audited_run import KEY, write_run
from tests.book import LedgerBook, failing
from tests.run_plan import EVENTFUL, Plan
from tests.stack.database import DatabaseUrls


@pytest.fixture
async def book(ledger: Ledger, blobs: BlobStore, fresh: Callable[[], str]) -> LedgerBook:
    """A finished run."""
    written = LedgerBook(ledger, blobs.put)
    await write_run(written, fresh(), EVENTFUL)
    return written


@pytest.fixture
def command(services_home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """`stepwell audit …` on the session's services."""
    monkeypatch.setenv("STEPWELL_HOME", str(services_home))
    return lambda *words: main(["audit", *map(str, words)])


def standalone(bundle: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """The bundle's own verifier, by a Python that sees nothing but its standard library."""
    verify_py = [sys.executable, "-I", "-S", str(bundle / "verify.py"), str(bundle), *words]
    return subprocess.run(verify_py, capture_output=True, text=True, check=False, cwd="/")


def test_an_exported_run_is_checked_without_stepwell(
    book: LedgerBook, command: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("anchor", book.run) == 0
    anchor = capsys.readouterr().out.strip()
    assert anchor.split()[:3] == ["stepwell-anchor-1", KEY.public, seal_stream(book.run)]
    assert command("export", book.run, "--out", tmp_path / "run") == 0
    said = capsys.readouterr().out
    assert f"{len(book.events):,} streams" in said
    checked = standalone(tmp_path / "run", "--anchor", anchor)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert f"signed up to finished by {KEY.public}" in checked.stdout
    assert checked.stdout.splitlines()[-1] == "what can be checked holds"
    assert "not proven" not in checked.stdout
    bare = standalone(tmp_path / "run")
    assert bare.returncode == 0
    assert "not proven: no key was given" in bare.stdout
    assert command("verify", book.run, "--anchor", anchor) == 0
    assert "ok      anchors" in capsys.readouterr().out

    events = (tmp_path / "run" / "events.txt").read_bytes()
    (tmp_path / "run" / "events.txt").write_bytes(events.replace(b'"score":0.0', b'"score":1.0', 1))
    broken = standalone(tmp_path / "run", "--anchor", anchor)
    assert broken.returncode == 1
    assert "broken  chains: " in broken.stdout
    assert broken.stdout.splitlines()[-1] == "it does not hold"


def test_a_tar_has_the_same_files_and_the_same_bytes_each_time(
    book: LedgerBook, command: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("export", book.run, "--out", tmp_path / "run.tar") == 0
    assert command("export", book.run, "--out", tmp_path / "b" / "run.tar") == 0
    assert (tmp_path / "run.tar").read_bytes() == (tmp_path / "b" / "run.tar").read_bytes()
    with tarfile.open(tmp_path / "run.tar") as tar:
        tar.extractall(tmp_path / "unpacked", filter="data")
    assert standalone(tmp_path / "unpacked" / "run").returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "run.tar", "unpacked"]
    assert command("export", book.run, "--out", tmp_path / "run.tar") == 2
    assert "is not written over it" in capsys.readouterr().err


def test_a_payload_is_left_out_of_a_bundle_and_nothing_that_checks_need_is(
    book: LedgerBook, command: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    payload = book.first(f"rollout/{book.run}/0/0/0", TurnRecorded).payload
    assert command("export", book.run, "--out", tmp_path / "run", "--without", payload) == 0
    checked = standalone(tmp_path / "run", "--key", KEY.public)
    assert checked.returncode == 0
    assert f"not proven: blob {payload} of rollout/{book.run}/0/0/0 #1 is not there" in checked.stdout
    capsys.readouterr()
    task_set = book.events[f"run/{book.run}"][0].task_set
    for blob, why in ((task_set, "nothing could be checked"), ("0" * 64, "no event of the run names")):
        assert command("export", book.run, "--out", tmp_path / "other", "--without", blob) == 2
        assert why in capsys.readouterr().err
    assert not (tmp_path / "other").exists()


def test_deleted_payloads_are_gone_for_good_and_every_audit_says_why(
    book: LedgerBook, command: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    payload = book.first(f"rollout/{book.run}/0/0/0", TurnRecorded).payload
    assert command("redact", book.run, payload, "--reason", "it names a person") == 0
    assert command("verify", book.run) == 0
    capsys.readouterr()
    assert command("redact", book.run, payload, "--reason", "again") == 1
    assert "is not stored" in capsys.readouterr().err
    task_set = book.events[f"run/{book.run}"][0].task_set
    assert command("redact", book.run, task_set, "--reason", "all of it") == 2
    assert command("export", book.run, "--out", tmp_path / "run") == 1
    assert "is not stored" in capsys.readouterr().out
    checked = standalone(tmp_path / "run", "--key", KEY.public)
    assert checked.returncode == 0
    assert "is not there: it names a person" in checked.stdout


async def test_the_tables_for_reading_are_compared_with_their_events(
    book: LedgerBook, connections: Database, blobs: BlobStore, database: DatabaseUrls
) -> None:
    async def audited() -> dict[str, str]:
        record = await read_run(connections, blobs, book.run)
        assert record is not None
        assert record.projected.rows > 0
        return failing(verify(record))

    readers = Database(database.projector, pool_size=1)
    await Projector(readers).catch_up()
    await readers.close()
    assert await audited() == {}
    with psycopg.connect(database.projector) as projector:
        row = (book.run, "0", 0, 0)
        where = "WHERE run = %s AND scope = %s AND prompt = %s AND sample = %s"
        projector.execute(f"UPDATE rollouts SET score = 0.5 {where}", row)
    found = await audited()
    assert found == {"projections": f"rollout/{book.run}/0/0/0: table rollouts: score is 0.5, its events make it 1.0"}
    with psycopg.connect(database.projector) as projector:
        projector.execute(f"UPDATE rollouts SET score = 1.0 {where}", row)
        projector.execute("DELETE FROM steps WHERE run = %s AND step = 1", [book.run])
    assert "table steps: lacks the row" in (await audited())["projections"]
    with psycopg.connect(database.projector) as projector:
        projector.execute("INSERT INTO prompts (run, scope, prompt) VALUES (%s, '9', 0)", [book.run])
    assert any(
        "has a row that no event makes" in str(finding) for finding in await _projections(connections, blobs, book)
    )
    with psycopg.connect(database.projector) as projector:
        for table in ("runs", "steps", "validations", "prompts", "rollouts"):
            projector.execute(f"DELETE FROM {table} WHERE run = %s", [book.run])


async def _projections(connections: Database, blobs: BlobStore, book: LedgerBook) -> list[object]:
    record = await read_run(connections, blobs, book.run)
    assert record is not None
    return next(list(result.findings) for result in verify(record).results if result.rule == "projections")


async def test_heads_are_signed_once_each_whoever_asks_again(
    connections: Database, ledger: Ledger, blobs: BlobStore, fresh: Callable[[], str], tmp_path: Path
) -> None:
    run = fresh()
    book = LedgerBook(ledger, blobs.put)
    await write_run(book, run, Plan(steps=1, signed=False))
    sealer = Sealer(Stores(ledger, blobs, actor="control:test/1"), SigningKeys(tmp_path))
    for at in ("0", "0", "finished"):
        await sealer.sign(run, at)
    events = [recorded.event for recorded in await ledger.read(seal_stream(run))]
    assert [event.key() for event in events] == ["declared", "head/0", "head/finished"]
    heads = {head.stream: head.seq for head in events[1].heads if isinstance(events[1], HeadSigned)}
    own = [f"run/{run}", f"weights/{run}", f"health/{run}", f"engine/{run}/e1"]
    assert heads == {name: len(book.events[name]) - 1 for name in own}
    elsewhere = Sealer(Stores(ledger, blobs, actor="control:test/2"), SigningKeys(tmp_path / "elsewhere"))
    await elsewhere.sign(run, "1")
    assert len(await ledger.read(seal_stream(run))) == 3, "who has another key signs nothing"
    record = await read_run(connections, blobs, run)
    assert record is not None
    verification = verify(record)
    assert failing(verification) == {}
    declared = events[0]
    assert isinstance(declared, KeyDeclared)
    assert verification.signed.words() == f"signed by ed25519 key {declared.public_key}: 2 heads, up to finished"


def test_an_anchor_of_a_run_without_a_key_names_the_runs_own_head(
    command: Callable[..., int], book: LedgerBook, database: DatabaseUrls, capsys: pytest.CaptureFixture[str]
) -> None:
    with psycopg.connect(database.migrator) as owner:
        owner.execute("ALTER TABLE events DISABLE TRIGGER events_stand")
        owner.execute("DELETE FROM events WHERE stream = %s", [seal_stream(book.run)])
        owner.execute("ALTER TABLE events ENABLE TRIGGER events_stand")
    assert command("anchor", book.run, "--json") == 0
    anchor = json.loads(capsys.readouterr().out)
    assert (anchor["public_key"], anchor["stream"]) == ("", f"run/{book.run}")
    assert command("verify", book.run, "--anchor", anchor["line"]) == 0
    assert "not signed: the run has no key" in capsys.readouterr().out
