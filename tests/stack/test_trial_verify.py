"""`stepwell ptb verify` on a real ledger: what somebody with all rights changed is found and named."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from cli.main import main
from db.blobs import BlobStore, blob_digest
from db.database import Database
from db.ledger import Ledger
from db.objects import ObjectStore, S3Address
from stepwell.events.streams import override_stream, trial_stream
from tests.audited_recipe import BASE, LEAKER, weights_of
from tests.audited_trials import Told
from tests.book import LedgerBook
from tests.stack.database import DatabaseUrls
from tests.stack.test_audit_verify import tamper
from workers.services.addresses import Addresses


async def _write(url: str, bucket: S3Address, run_set: str) -> None:
    database, objects = Database(url, pool_size=1), ObjectStore(bucket)
    try:
        blobs = BlobStore(database, objects)
        await Told(LedgerBook(Ledger(database, blobs), blobs.put), run_set).whole()
    finally:
        await objects.close()
        await database.close()


@pytest.fixture
def run_set(
    database: DatabaseUrls,
    bucket: S3Address,
    fresh: Callable[[], str],
    services: Addresses,
    services_home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[str]:
    """A finished run set in the services that commands find; what a test makes of it does not stay."""
    monkeypatch.setenv("STEPWELL_HOME", str(services_home))
    name = fresh()
    asyncio.run(_write(database.appender, bucket, name))
    yield name
    with psycopg.connect(database.migrator) as owner:
        owner.execute("ALTER TABLE events DISABLE TRIGGER events_stand")
        owner.execute("ALTER TABLE blobs DISABLE TRIGGER blobs_stand")
        owner.execute("DELETE FROM events WHERE split_part(stream, '/', 2) = %s", [name])
        owner.execute("DELETE FROM blobs WHERE place = 'postgres' AND encode(sha256(data), 'hex') <> digest")
        owner.execute("ALTER TABLE events ENABLE TRIGGER events_stand")
        owner.execute("ALTER TABLE blobs ENABLE TRIGGER blobs_stand")


def test_a_run_set_as_it_was_appended_verifies(run_set: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ptb", "verify", run_set]) == 0, capsys.readouterr().out
    said = capsys.readouterr().out
    assert f"run set {run_set} (finished), 3 trials, 3 with a record, 5 streams" in said
    assert said.endswith("every rule holds\n")


def test_changes_of_the_database_are_found_and_the_first_is_named(
    run_set: str, database: DatabaseUrls, capsys: pytest.CaptureFixture[str]
) -> None:
    trial, override = trial_stream(run_set, LEAKER), override_stream(run_set, LEAKER)
    model = blob_digest(weights_of(run_set, LEAKER))
    tamper(
        database,
        ("UPDATE events SET exact = set_byte(exact, 20, get_byte(exact, 20) # 1) WHERE stream = %s", [override]),
        ("UPDATE blobs SET data = set_byte(data, 0, 0) WHERE digest = %s", [model]),
        ("DELETE FROM events WHERE stream = %s AND seq = 17", [trial]),
    )
    assert main(["ptb", "verify", run_set]) == 1
    said = capsys.readouterr().out
    assert f"{override} #0: {override} #0: the bytes hash to" in said
    assert f"Look first at {override}:\nit breaks `chains`" in said
    assert main(["ptb", "verify", run_set, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    findings = {result["rule"]: result["findings"] for result in found["results"] if result["findings"]}
    assert set(findings) == {"chains", "blobs", "ending"}, findings
    assert (findings["blobs"][0]["stream"], model in findings["blobs"][0]["what"]) == (trial, True)
    assert f"{LEAKER} has no record" in findings["ending"][0]["what"]


def test_a_trial_that_is_taken_out_whole_is_missed_by_what_commits_to_it(
    run_set: str, database: DatabaseUrls, capsys: pytest.CaptureFixture[str]
) -> None:
    tamper(database, ("DELETE FROM events WHERE stream = %s", [trial_stream(run_set, BASE)]))
    assert main(["ptb", "verify", run_set]) == 1
    assert f"{BASE} has no record" in capsys.readouterr().out


def test_a_run_set_that_there_is_not_is_named_with_the_nearest(
    run_set: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ptb", "verify", run_set[:-1]]) == 2
    assert f"no run set '{run_set[:-1]}'" in capsys.readouterr().err
