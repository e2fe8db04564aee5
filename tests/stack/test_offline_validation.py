"""The offline rule: a run trains to its end, then validates each version on engines that load it again, and may be
killed in the middle of it; and a certificate of real runs."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from cli.main import main
from db.blobs import BlobStore
from db.database import Database
from db.ledger import Ledger
from db.recorded import Recorded
from db.run_record import read_run
from stepwell.audit.verification import verify
from stepwell.events import (
    RunFinished,
    StepTrained,
    TurnRecorded,
    ValidationClosed,
    ValidationOpened,
    ValidationRecorded,
    VersionAttested,
)
from stepwell.events.run_finished import RunEnd
from stepwell.events.streams import engine_stream, run_stream, weights_stream
from stepwell.mlperf.certificate.certify import certify
from tests.book import failing
from tests.stack.tiny_run import Start

OFFLINE = (
    "run.max_staleness=0",
    "validation.mode=offline",
    "validation.initial=true",
    "validation.first=1",
    "validation.every=1",
    "validation.target=0.4",
)


def served(engines: Sequence[Recorded]) -> list[list[int]]:
    """Versions that each engine attested, one after the other, the engine that came first first."""
    by_engine: dict[str, list[int]] = {}
    for each in sorted(engines, key=lambda each: each.envelope.time):
        versions = by_engine.setdefault(each.stream, [])
        if isinstance(each.event, VersionAttested) and versions[-1:] != [each.event.version]:
            versions.append(each.event.version)
    return list(by_engine.values())


@pytest.mark.timeout(900)
async def test_offline_every_version_is_validated_after_training_though_the_run_is_killed_in_between(
    start_run: Start, ledger: Ledger, blobs: BlobStore, connections: Database
) -> None:
    run = start_run("offline", *OFFLINE)
    await run.until(lambda events: any("/v0-main/" in each.stream for each in events))
    run.kill()  # the engine, which had served version 1, holds version 0 again
    run.start()
    assert await run.finish() == 0, run.output
    assert run.leftovers() == []

    own = await ledger.read(run_stream("offline"))
    recorded = [each.event for each in own if isinstance(each.event, ValidationRecorded)]
    assert [(each.version, each.dataset) for each in recorded] == [(0, "main"), (1, "main"), (2, "main")]
    weights = await ledger.read(weights_stream("offline"))
    made = {each.event.version: each for each in weights if isinstance(each.event, StepTrained)}
    validations = await ledger.read_prefix("validation/offline/")
    opened = [each for each in validations if isinstance(each.event, ValidationOpened)]
    assert len(opened) == 3
    assert sum(isinstance(each.event, ValidationClosed) for each in validations) == 3
    assert all(each.envelope.time > made[2].envelope.time for each in opened), "training went before"
    for version in (0, 1, 2):
        turns = await ledger.read_prefix(f"rollout/offline/v{version}-main/")
        assert {each.event.version for each in turns if isinstance(each.event, TurnRecorded)} == {version}
    engines = await ledger.read_prefix(engine_stream("offline", ""))
    assert served(engines) == [[0, 1, 0], [0, 1, 2]], (
        "an older version is loaded again, and by an engine that comes new"
    )

    passed = [each.version for each in recorded if each.version and each.pass_k > 0.4]
    last = own[-1].event
    assert isinstance(last, RunFinished)
    assert (last.end, last.version) == (RunEnd.TARGET if passed else RunEnd.MAX_STEPS, 2)
    record = await read_run(connections, blobs, "offline")
    assert record is not None
    assert failing(verify(record)) == {}
    certificate = certify(record)
    assert certificate.granted, certificate.first
    if passed:
        assert certificate.stop is not None
        assert (certificate.stop.version, certificate.stop.time) == (passed[0], made[passed[0]].envelope.time)


@pytest.fixture
def certified(
    undisturbed: dict[str, object], services_home: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., int]:
    """`stepwell mlperf certify undisturbed …`."""
    monkeypatch.setenv("STEPWELL_HOME", str(services_home))
    return lambda *words: main(["mlperf", "certify", "undisturbed", *words])


def test_a_run_that_nothing_disturbed_is_certified(
    certified: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "certificate.json"
    assert certified("--out", str(out)) == 0, capsys.readouterr().out
    said = capsys.readouterr().out
    assert "evaluations by the recipe's own schedule, inline: from version 2, every 2; 8 samples a step" in said
    assert "granted: complete; no version passed the target" in said
    document = json.loads(out.read_text())
    assert (document["run"], document["granted"], document["stop"]) == ("undisturbed", True, None)
    assert {rule["rule"]: rule["checked"] for rule in document["rules"]}["samples"] == 16 + 4


def test_a_log_without_what_was_declared_in_it_is_refused(
    certified: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        certified("--log", "result_0.txt")
    assert refused.value.code == 2
    assert "--log and --submission are given together" in capsys.readouterr().err
