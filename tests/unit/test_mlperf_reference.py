"""The benchmark's 18 published logs: each as a ledger of ours, and the log that our own writer makes of it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from stepwell.events.envelope import GENESIS, verify_link
from stepwell.mlperf.deriving import derive
from stepwell.mlperf.key_changes import key_changes
from stepwell.mlperf.lines import lines_of, mllog_text
from stepwell.mlperf.official_checks import check_compliance, check_convergence
from stepwell.mlperf.published_log import NoReferenceLog
from stepwell.mlperf.reference_logs import TODAY_EVAL_SAMPLES, import_log

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data" / "mlperf"
LOGS = Path(os.environ.get("STEPWELL_MLPERF_DATA", BESIDE)) / "reference_logs"
needs_logs = pytest.mark.skipif(
    not LOGS.is_dir(),
    reason="the benchmark's published logs are neither in ../shared/data/mlperf nor in $STEPWELL_MLPERF_DATA",
)
SAMPLES = {256: 4608, 512: 5120, 1024: 7168}
"""Samples to target of the published runs by batch."""
SEEDS = range(1, 7)
ADDED = {
    "lowest_numerical_precision_in_linear",
    "lowest_numerical_precision_in_attn",
    "lowest_numerical_precision_in_comm",
    "config_filename",
}
"""Keys that today's checker asks for and the published logs do not have."""
LEFT_OUT = {"opt_learning_rate_decay_steps", "generation_pipeline_parallelism", "generation_expert_parallelism"}
"""Keys of theirs that no checker asks for, and that say nothing of a run of ours."""


def published(batch: int, seed: int) -> str:
    """A published log."""
    return (LOGS / f"gbs{batch}_seed{seed}.log").read_text(encoding="utf-8")


def record_of(line: str) -> dict[str, Any]:
    """What a line says."""
    return json.loads(line.partition(":::MLLOG ")[2])


def ours(text: str, *, today: bool) -> str:
    """The log that our writer makes of its ledger."""
    imported = import_log(text, "reference", eval_samples=TODAY_EVAL_SAMPLES if today else None)
    return mllog_text(lines_of(derive(imported.facts, imported.submission)))


@needs_logs
@pytest.mark.parametrize("batch", SAMPLES)
def test_each_published_run_passes_closed_with_what_todays_checker_asks_for(batch: int, tmp_path: Path) -> None:
    paths = [tmp_path / f"seed{seed}.txt" for seed in SEEDS]
    for seed, path in zip(SEEDS, paths, strict=True):
        text = published(batch, seed)
        path.write_text(ours(text, today=True), encoding="utf-8")
        verdict = check_compliance(path)
        assert verdict.passed, (seed, verdict.messages)
        changes = {change.key: change for change in key_changes(text, path.read_text(encoding="utf-8"))}
        assert {key for key, change in changes.items() if not change.was} == ADDED
        assert {key for key, change in changes.items() if not change.now} == LEFT_OUT
        assert {key: change.now for key, change in changes.items() if change.was and change.now} == {
            "eval_samples": (251,)
        }
    for three in (paths[:3], paths[3:]):
        verdict = check_convergence(three)
        assert (verdict.passed, verdict.messages[0]) == (True, "RCP found")


@needs_logs
def test_a_published_run_as_it_was_fails_today_on_nothing_but_its_256_validation_tasks(tmp_path: Path) -> None:
    path = tmp_path / "result_0.txt"
    path.write_text(ours(published(256, 1), today=False), encoding="utf-8")
    verdict = check_compliance(path)
    assert not verdict.passed
    assert len(verdict.messages) == 1
    assert verdict.messages[0].startswith("CHECK for 'eval_samples' failed")
    assert "v['value'] == 251" in verdict.messages[0]


@needs_logs
def test_a_published_log_itself_fails_today_on_what_we_add(tmp_path: Path) -> None:
    path = tmp_path / "published.txt"
    path.write_text(published(256, 1), encoding="utf-8")
    said = "\n".join(check_compliance(path).messages)
    assert {key for key in ADDED if f"Required EXACTLY_ONE occurrence of '{key}'" in said} == ADDED


@needs_logs
@pytest.mark.parametrize(("batch", "steps"), [(256, 18), (512, 10), (1024, 7)])
def test_an_imported_ledger_is_a_chain_of_real_events_at_the_published_times(batch: int, steps: int) -> None:
    text = published(batch, 2)
    imported = import_log(text, "reference")
    heads: dict[str, tuple[int, str]] = {}
    for envelope, _ in imported.facts.events:
        seq, prev = heads.get(envelope.stream, (0, GENESIS))
        verify_link(envelope.exact_bytes(), stream=envelope.stream, seq=seq, prev_hash=prev, hash=envelope.hash)
        heads[envelope.stream] = (seq + 1, envelope.hash)
    log = derive(imported.facts, imported.submission)
    assert (log.stop.version, log.samples, len(log.steps)) == (steps, SAMPLES[batch], steps)
    times = {record["key"]: record["time_ms"] for record in map(record_of, text.splitlines())}
    assert log.began.time_ms == times["run_start"]
    assert log.stop.place.time_ms == times["eval_accuracy"], "the run stops where it learns the result"
    assert 0 <= times["run_stop"] - times["eval_accuracy"] < 100, "the reference says so some milliseconds later"


@needs_logs
def test_the_command_says_which_keys_were_added_changed_and_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "result_0.txt"
    assert main(["mlperf", "import", str(LOGS / "gbs512_seed3.log"), "--today", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{out}: 25 events, ")
    assert "changed  eval_samples = 251 (was 256)\n" in said
    assert 'added    lowest_numerical_precision_in_comm = "bfloat16"\n' in said
    assert "left out generation_expert_parallelism (was 8)\n" in said
    assert main(["mlperf", "check", str(out)]) == 0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (':::MLLOG {"key": "seed", "value": 1, "time_ms": 1, "metadata": {}}', "no line 'eval_samples'"),
        (':::MLLOG {"key": "seed"', "line 2 cannot be read"),
        (':::MLLOG {"key": "seed", "value": 1}', "line 2 has no time_ms, metadata: it is no line of a benchmark log"),
        (":::MLLOG 7", "line 2 has no key, value, time_ms, metadata"),
    ],
)
def test_what_is_no_log_of_the_reference_is_refused_with_what_it_lacks(line: str, said: str) -> None:
    with pytest.raises(NoReferenceLog, match=said):
        import_log(f"a line of another program\n{line}\n", "reference")


@needs_logs
def test_a_published_log_that_breaks_off_in_an_evaluation_is_refused() -> None:
    text = published(256, 1)
    with pytest.raises(NoReferenceLog, match=r"begins 1 evaluation\(s\) and has the accuracy of 0"):
        import_log(text[: text.index('"eval_accuracy"')].rpartition("\n")[0], "reference")
