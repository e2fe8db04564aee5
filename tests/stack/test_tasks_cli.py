"""`stepwell tasks`: forge a set, audit it, compare what two machines found."""

import json
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from cli.main import main
from stepwell.tasks.audit import AuditReport
from stepwell.tasks.audit.report import read_report
from stepwell.tasks.set_file import read_set, write_set
from tests.stack.small_package import write_archive

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.timeout(1800)
"""Dozens of sandboxes a test: on a machine that is busy with other things they take minutes."""


@dataclass(frozen=True)
class Made:
    """A set that was forged and audited."""

    archive: Path
    file: Path
    report: Path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("tasks")
    archive, file, report = write_archive(folder), folder / "set.jsonl", folder / "report.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEPWELL_HOME", str(folder / "home"))
        assert main(["tasks", "forge", str(archive), "--train", "2", "--validation", "1", "--out", str(file)]) == 0
        assert main(["tasks", "audit", str(file), "--repetitions", "2", "--out", str(report)]) == 0
    return Made(archive, file, report)


def test_a_forged_set_passes_its_audit_twice_and_says_how_long_it_took(made: Made) -> None:
    report = read_report(made.report)
    tasks = read_set(made.file)
    assert [task.task for task in report.kept] == [task.digest for task in tasks]
    assert len(tasks) == 3
    for task in report.tasks:
        assert (len(task.gold), len(task.nothing), len(task.gold_s), len(task.nothing_s)) == (2, 2, 2, 2)
        assert min(*task.gold_s, *task.nothing_s) > 0
        assert task.nothing[0].not_passed


def test_forging_again_writes_the_same_bytes_and_says_what_was_made(
    made: Made, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPWELL_HOME", str(made.file.parent / "home"))
    again = made.file.with_name("again.jsonl")
    arguments = ["--train", "2", "--validation", "1", "--out", str(again), "--json"]
    assert main(["tasks", "forge", str(made.archive), *arguments]) == 0
    said = json.loads(capsys.readouterr().out)
    assert again.read_bytes() == made.file.read_bytes()
    assert said["digest"] == read_report(made.report).set_digest
    assert said["splits"] == {"train": 2, "validation": 1}
    assert said["licences"] == {"wallet": "MIT"}
    assert sum(said["kinds"].values()) == 3
    assert said["packages"][0]["tried"] >= 3


def test_a_task_whose_gold_patch_does_not_pass_fails_the_audit_and_is_left_out(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad, *_ = read_set(made.file)
    broken = bad.model_copy(update={"gold": dict.fromkeys(bad.gold, "raise OSError\n")})
    file, kept = tmp_path / "set.jsonl", tmp_path / "kept.jsonl"
    with file.open("w") as opened:
        write_set([good, broken], opened)
    assert main(["tasks", "audit", str(file), "--repetitions", "1", "--keep", str(kept), "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["kept"] == 1
    assert said["dropped"].keys() == {broken.id}
    assert "the gold patch does not pass" in said["dropped"][broken.id]
    assert read_set(kept) == [good]


def other_machine(report: AuditReport, differing: int) -> AuditReport:
    """The same audit as another machine would have made it, with other tests failing in some tasks."""
    tasks = [
        task
        if number >= differing
        else task.model_copy(
            update={
                "nothing": tuple(seen.model_copy(update={"not_passed": {"t::x": "failed"}}) for seen in task.nothing)
            }
        )
        for number, task in enumerate(report.tasks)
    ]
    machine = report.machine.model_copy(update={"architecture": "aarch64"})
    return report.model_copy(update={"machine": machine, "tasks": tuple(tasks)})


def test_two_machines_that_agree_have_the_same_digest(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "aarch64.json"
    other.write_text(other_machine(read_report(made.report), 0).model_dump_json())
    assert main(["tasks", "audit", "--compare", str(made.report), str(other)]) == 0
    said = capsys.readouterr().out
    assert "aarch64 agree on 3 of 3 tasks" in said
    assert said.count(read_report(made.report).digest) == 2


def test_tasks_that_two_machines_differ_on_are_named_and_left_out(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other, kept = tmp_path / "aarch64.json", tmp_path / "kept.jsonl"
    other.write_text(other_machine(read_report(made.report), 1).model_dump_json())
    arguments = [str(made.file), "--compare", str(made.report), str(other), "--keep", str(kept), "--json"]
    assert main(["tasks", "audit", *arguments]) == 1
    said = json.loads(capsys.readouterr().out)
    tasks = read_set(made.file)
    assert [dropped["id"] for dropped in said["dropped"]] == [tasks[0].id]
    assert "differ in" in said["dropped"][0]["reason"]
    assert read_set(kept) == tasks[1:]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["audit"], "name a set, or two reports"),
        (["audit", "--compare", "a", "b", "--out", "c"], "--out and --repetitions would do nothing"),
        (["audit", "--compare", "a", "b", "--keep", "c"], "name both SET and --keep"),
        (["audit", "s", "--repetitions", "0"], "--repetitions 0"),
        (["audit", "nowhere"], "nowhere cannot be read"),
        (["audit", "--compare", "nowhere", "b"], "nowhere cannot be read"),
        (["forge", "--out", "x", "--packages", "nix"], "no package 'nix'"),
        (["forge", "--out", "x", "--confirm", "3"], "--confirm would do nothing without --templates"),
        (["forge", "--out", "x", "--templates", "--packages", "toolz"], "--packages would do nothing with --templates"),
        (["forge", "--out", "x", "a.tar.gz", "--heldout", "3"], "--heldout would do nothing with archives"),
        (["forge", "--out", "x", "--templates", "--train", "0"], "--train 0"),
        (["forge", "--out", "x", "--seed", "-1"], "--seed -1"),
        (["forge", "--out", "x", "--train", "0", "--validation", "0", "--heldout", "0"], "no task is asked for"),
        (["forge", "--out", "x", "--any-licence"], "--any-licence would do nothing without archives"),
        (["forge", "--out", "nowhere/x"], "there is no folder nowhere"),
        (["forge", "--out", "."], "--out . is a folder"),
        (["forge", "--out", "notes"], "--out notes exists and is something else"),
        (["forge", "--out", "x", "viral-1.2.tar.gz"], "the licence of viral 1.2 is 'GPL-3.0-only'"),
        (["forge", "--out", "x", "bare-1.2.tar.gz"], "bare-1.2.tar.gz: the source distribution has no tests"),
        (["forge", "--out", "x", "wallet-1.2.tar.gz", "again.tar.gz"], "wallet is in two of the archives"),
        (["audit", "notes", "--out", "notes"], "--out notes exists and is something else"),
        (["audit", "notes", "--keep", "nowhere/x"], "--keep nowhere/x: there is no folder nowhere"),
    ],
)
def test_what_would_do_nothing_or_is_not_there_is_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").write_text("of mine\n")
    write_archive(tmp_path)
    write_archive(tmp_path).rename(tmp_path / "again.tar.gz")
    write_archive(tmp_path)
    write_archive(tmp_path, "viral", licence="GPL-3.0-only")
    write_archive(tmp_path, "bare", with_tests=False)
    assert main(["tasks", *arguments]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
    assert (tmp_path / "notes").read_text() == "of mine\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_forging_that_is_stopped_leaves_no_sandbox_or_the_next_one_removes_it(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPWELL_HOME", str(tmp_path / "home"))
    sandboxes = tmp_path / "home" / "sandboxes"
    command = [sys.executable, "-m", "cli.main", "tasks", "forge", str(write_archive(tmp_path)), "--out"]
    with subprocess.Popen([*command, str(tmp_path / "set.jsonl")], cwd=ROOT, stderr=subprocess.PIPE) as running:
        while not list(sandboxes.glob("*")):
            assert running.poll() is None
            time.sleep(0.05)
        running.send_signal(number)
    if number == signal.SIGKILL:
        assert list(sandboxes.iterdir())
        assert main(["tasks", "audit", str(no_tasks(tmp_path)), "--json"]) == 0
    else:
        assert running.returncode == 1
    assert list(sandboxes.iterdir()) == []
    assert not (tmp_path / "set.jsonl").exists()


def no_tasks(folder: Path) -> Path:
    """A set without a task."""
    file = folder / "none.jsonl"
    file.write_text("")
    return file


@pytest.mark.parametrize("kept", [40, 400])
def test_an_archive_that_was_cut_off_says_so(kept: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = write_archive(tmp_path)
    archive.write_bytes(archive.read_bytes()[:kept])
    assert main(["tasks", "forge", str(archive), "--out", str(tmp_path / "x")]) == 1
    assert f"{archive} is no source distribution" in capsys.readouterr().err


def test_template_tasks_are_written_in_the_same_form(tmp_path: Path) -> None:
    file = tmp_path / "set.jsonl"
    counts = ["--train", "3", "--validation", "1", "--confirm", "0", "--heldout", "1"]
    assert main(["tasks", "forge", "--templates", *counts, "--out", str(file)]) == 0
    assert [task.split for task in read_set(file)] == ["train"] * 3 + ["validation", "heldout_family"]
