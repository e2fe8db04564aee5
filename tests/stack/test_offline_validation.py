"""The offline rule: a run trains to its end, then validates each version on engines that load it again, and may be
killed in the middle of it; and a certificate of real runs."""

import json
import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio
import tomli_w

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
from stepwell.events.envelope import Envelope
from stepwell.events.run_finished import RunEnd
from stepwell.events.streams import engine_stream, run_stream, weights_stream
from stepwell.mlperf.certificate.certify import certify
from tests.benchmark_story import SUBMISSION
from tests.book import failing
from tests.stack.tiny_run import TinyRun
from workers.services.addresses import Addresses

TARGET = 0.01
"""So low that any task that any sample solves is enough."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
OFFLINE = (
    "run.max_staleness=0",
    "validation.mode=offline",
    "validation.initial=true",
    "validation.first=1",
    "validation.every=1",
    f"validation.target={TARGET}",
)


def served(engines: Sequence[Recorded]) -> list[list[int]]:
    """Versions that each engine attested, one after the other, the engine that came first first."""
    by_engine: dict[str, list[int]] = {}
    for each in sorted(engines, key=lambda each: each.envelope.time):
        versions = by_engine.setdefault(each.stream, [])
        if isinstance(each.event, VersionAttested) and versions[-1:] != [each.event.version]:
            versions.append(each.event.version)
    return list(by_engine.values())


@dataclass(frozen=True)
class OfflineRun:
    """A run that is over."""

    leftovers: Sequence[str]
    """Its processes that are still there."""
    own: Sequence[Recorded]
    """Events of `run/offline`."""
    weights: Sequence[Recorded]
    """Events of `weights/offline`."""

    @property
    def recorded(self) -> list[ValidationRecorded]:
        """Results, as they came."""
        return [each.event for each in self.own if isinstance(each.event, ValidationRecorded)]

    @property
    def made(self) -> dict[int, Envelope]:
        """By version, where its weight update stands."""
        return {each.event.version: each.envelope for each in self.weights if isinstance(each.event, StepTrained)}

    @property
    def passed(self) -> int:
        """The lowest version above the target."""
        return min(each.version for each in self.recorded if each.version and each.pass_k > TARGET)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def offline(
    services: Addresses, services_home: Path, ledger: Ledger, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[OfflineRun]:
    """A run that is over, and was killed while it validated."""
    run = TinyRun("offline", services_home, ledger, tmp_path_factory.mktemp("offline"), OFFLINE)
    try:
        run.start()
        await run.until(lambda events: any("/v0-main/" in each.stream for each in events))
        run.kill()  # the engine, which had served version 1, holds version 0 again
        run.start()
        assert await run.finish() == 0, run.output
        own, weights = [await ledger.read(stream) for stream in (run_stream("offline"), weights_stream("offline"))]
        yield OfflineRun(run.leftovers(), own, weights)
    finally:
        run.kill()


@pytest.mark.timeout(900)
async def test_offline_every_version_is_validated_after_training_though_the_run_is_killed_in_between(
    offline: OfflineRun, ledger: Ledger, blobs: BlobStore, connections: Database
) -> None:
    assert offline.leftovers == []
    assert [(each.version, each.dataset) for each in offline.recorded] == [(0, "main"), (1, "main"), (2, "main")]
    validations = await ledger.read_prefix("validation/offline/")
    opened = [each for each in validations if isinstance(each.event, ValidationOpened)]
    assert len(opened) == 3
    assert sum(isinstance(each.event, ValidationClosed) for each in validations) == 3
    assert all(each.envelope.time > offline.made[2].time for each in opened), "training went before"
    for version in (0, 1, 2):
        turns = await ledger.read_prefix(f"rollout/offline/v{version}-main/")
        assert {each.event.version for each in turns if isinstance(each.event, TurnRecorded)} == {version}
    engines = await ledger.read_prefix(engine_stream("offline", ""))
    killed, new = served(engines)
    assert killed[:3] == [0, 1, 0], "an older version is loaded again"
    assert killed[3:] in ([], [1], [1, 2]), "on a busy machine the kill comes late"
    assert new in ([0, 1, 2], [1, 2], [2]), "an engine that comes new loads what is left to validate"

    last = offline.own[-1].event
    assert isinstance(last, RunFinished)
    assert (last.end, last.version) == (RunEnd.TARGET, 2)
    record = await read_run(connections, blobs, "offline")
    assert record is not None
    assert failing(verify(record)) == {}
    certificate = certify(record)
    assert certificate.granted, certificate.first
    assert certificate.stop is not None
    assert (certificate.stop.version, certificate.stop.time) == (offline.passed, offline.made[offline.passed].time)


@pytest.mark.timeout(900)
def test_offline_the_log_has_the_evaluations_and_stops_at_the_weight_update_that_passed(
    offline: OfflineRun,
    services_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    passed, update = offline.passed, offline.made[offline.passed]
    scores = {each.version: each.pass_k for each in offline.recorded}
    log, submission = tmp_path / "result_0.txt", tmp_path / "submission.toml"
    submission.write_text(tomli_w.dumps({"mlperf": SUBMISSION.model_dump(exclude_none=True)}))
    monkeypatch.setenv("STEPWELL_HOME", str(services_home))
    assert main(["mlperf", "log", "offline", "--submission", str(submission), "--out", str(log)]) == 0
    lines = [json.loads(line.partition(" ")[2]) for line in log.read_text().splitlines()]
    stop = lines[-1]
    assert (stop["key"], stop["metadata"]["status"]) == ("run_stop", "success")
    assert (stop["metadata"]["stream"], stop["metadata"]["seq"]) == (update.stream, update.seq)
    assert stop["time_ms"] == (datetime.fromisoformat(update.time) - EPOCH) // timedelta(milliseconds=1)
    evaluated = [line for line in lines if line["key"].startswith("eval_") and line["key"] != "eval_samples"]
    assert [(line["key"], line["metadata"]["samples_count"], line["value"]) for line in evaluated] == [
        told
        for version in range(passed + 1)
        for told in (
            ("eval_start", 8 * version, None),
            ("eval_accuracy", 8 * version, scores[version]),
            ("eval_stop", 8 * version, None),
        )
    ]
    assert all(line["time_ms"] >= stop["time_ms"] for line in evaluated), "they do not count"

    capsys.readouterr()
    assert main(["mlperf", "check", str(log), "--json"]) == 1
    (verdict,) = json.loads(capsys.readouterr().out)["verdicts"]
    too_small = {"eval_samples", "max_sequence_length"}
    too_weak = set[str]() if max(scores[version] for version in range(passed + 1)) > 0.69 else {"eval_accuracy"}
    assert set(re.findall(r"(?:CHECK for '|Failed checks for )(\w+)", "\n".join(verdict["messages"]))) == (
        too_small | too_weak
    ), verdict["messages"]
    words = ["certify", "offline", "--log", str(log), "--submission", str(submission)]
    assert main(["mlperf", *words]) == 0, capsys.readouterr().out


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
