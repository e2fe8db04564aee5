"""`stepwell mlperf` on the real ledger: a recorded run's log, compared with an edited one, and a package."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import tomli_w

from cli.main import main
from db.blobs import BlobStore
from db.ledger import Ledger
from stepwell.mlperf.submission import SYSTEM_COUNTS, SYSTEM_FIELDS
from tests.benchmark_story import BATCH, SUBMISSION, TASKS, benchmark_recipe, benchmark_story


@pytest.fixture
def command(services_home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """`stepwell mlperf …` on the session's services."""
    monkeypatch.setenv("STEPWELL_HOME", str(services_home))
    return lambda *words: main(["mlperf", *map(str, words)])


@pytest.fixture
def submission(tmp_path: Path) -> Path:
    """A submission file for the open division."""
    counts = dict.fromkeys(SYSTEM_COUNTS, "1")
    system = dict.fromkeys(SYSTEM_FIELDS, "") | counts | {"status": "Preview", "system_name": "one"}
    path = tmp_path / "submission.toml"
    tables = {"mlperf": SUBMISSION.model_dump(exclude_none=True), "system": system}
    path.write_text(tomli_w.dumps(tables), encoding="utf-8")
    return path


@pytest.fixture
async def runs(ledger: Ledger, blobs: BlobStore, fresh: Callable[[], str]) -> list[str]:
    """Three runs by the benchmark's rules, each of its own seed."""
    await blobs.put_many([TASKS.blob(), BATCH.canonical_bytes()])
    stories = [
        benchmark_story(fresh(), recipe=benchmark_recipe(run={"seed": seed}), solved=(180,)) for seed in range(3)
    ]
    for story in stories:
        for envelope, event in story.told:
            await ledger.append(envelope.stream, [event], expected_seq=envelope.seq, actor=envelope.actor)
    return [story.run for story in stories]


def test_a_recorded_run_gives_a_log_that_passes_open(
    runs: list[str],
    command: Callable[..., int],
    submission: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run, out = runs[0], tmp_path / "result_0.txt"
    assert command("log", run, "--submission", submission, "--out", out) == 0
    assert "success at version 18, 4,608 samples" in capsys.readouterr().out
    assert command("check", out) == 0
    assert command("log", run, "--submission", submission, "--check", out) == 0
    capsys.readouterr()
    assert command("log", run, "--submission", submission, "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["status"], said["samples"]) == ("success", 4608)
    assert said["lines"] == [json.loads(line.partition(" ")[2]) for line in out.read_text().splitlines()]


def test_an_edited_line_of_a_recorded_runs_log_is_named_with_its_event(
    runs: list[str],
    command: Callable[..., int],
    submission: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run, out = runs[0], tmp_path / "result_0.txt"
    assert command("log", run, "--submission", submission, "--out", out) == 0
    lines = out.read_text().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if '"key": "eval_accuracy"' in line)
    lines[at] = lines[at].replace(str(180 / 251), "0.75")
    out.write_text("".join(lines))
    capsys.readouterr()
    assert command("log", run, "--submission", submission, "--check", out) == 1
    said = capsys.readouterr().out
    assert said.startswith(f"{out}:{at + 1}: differs in value; the line comes from pass_k of run/{run} #")


def test_a_certificate_says_whether_a_log_is_the_ledgers(
    runs: list[str],
    command: Callable[..., int],
    submission: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run, out = runs[1], tmp_path / "result_1.txt"

    def refused() -> list[tuple[str, int]]:
        """What the certificate's rule of logs finds; others find that nothing but the story was recorded."""
        capsys.readouterr()
        assert command("certify", run, "--log", out, "--submission", submission, "--json") == 1
        (log,) = [rule for rule in json.loads(capsys.readouterr().out)["rules"] if rule["rule"] == "log"]
        assert log["checked"] == len(out.read_text().splitlines())
        return [(each["stream"], each["seq"]) for each in log["findings"]]

    assert command("log", run, "--submission", submission, "--out", out) == 0
    assert refused() == []
    text = out.read_text().splitlines(keepends=True)
    at = next(number for number, line in enumerate(text) if '"eval_accuracy"' in line)
    text[at] = text[at].replace('"value": 0.', '"value": 0.9')
    out.write_text("".join(text))
    assert refused() == [(str(out), at + 1)] * 2, "the line, and the accuracy that the record computes"


def test_three_recorded_runs_are_laid_out_and_pass_the_package_checker(
    runs: list[str],
    command: Callable[..., int],
    submission: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command("package", *runs, "--submission", submission, "--out", tmp_path, "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["passed"], said["folder"], list(said["minutes"])) == (True, str(tmp_path / "Example"), runs)
    assert (tmp_path / "Example" / "systems" / "one.json").is_file()
    assert command("package", *runs, "--submission", submission, "--out", tmp_path) == 2
    assert "is there already" in capsys.readouterr().err
    assert command("package", *runs, "--submission", submission, "--out", submission) == 1
    assert f"{submission} cannot be written: File exists; name another with --out" in capsys.readouterr().err


def test_an_unknown_run_and_a_bad_submission_are_wrong_usage(
    runs: list[str],
    command: Callable[..., int],
    submission: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = runs[0]
    assert command("log", f"{run}x", "--submission", submission) == 2
    assert f"did you mean '{run}'" in capsys.readouterr().err
    assert command("log", run, "--submission", tmp_path / "none.toml") == 2
    assert "No such file" in capsys.readouterr().err
