"""`stepwell ptb review`, and the files that it reads."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.main import main
from stepwell.ptb.review import Audited, BrokenRecord, ReviewRecord, SetupRecord, TrialRecord, read_record
from tests.ptb_results import write_results
from tests.ptb_reviewed import record, setup


def write(path: Path, whole: ReviewRecord) -> Path:
    """A file that holds all of a record."""
    lines = [*whole.bases, *whole.cells, *whole.setups, *whole.trials, *whole.audited]
    path.write_text("".join(each.model_dump_json() + "\n" for each in lines), encoding="utf-8")
    return path


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    whole = record()
    assert read_record([write(tmp_path / "a.jsonl", whole)]) == whole
    assert read_record([tmp_path / "a.jsonl", tmp_path / "a.jsonl"]) == whole


def test_a_whole_record_is_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ptb", "review", str(write(tmp_path / "a.jsonl", record()))]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Verified  40 trials")
    for wanted in ("S3  pass  A sample of scores", "would change it:", "looked at", "Q6  Sufficient"):
        assert wanted in said


def test_results_alone_are_not_enough_information(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = record()
    path = write_results(tmp_path / "a.jsonl", *whole.bases, *whole.cells)
    assert main(["ptb", "review", str(path)]) == 1
    said = capsys.readouterr().out
    assert said.startswith("Not enough information")
    assert "(all 40 trials)" in said
    assert main(["ptb", "review", str(path), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["reviewability"]) == ("Not enough information", "Inadequate")
    assert len(found["findings"]) == 27


def test_the_sample_that_is_written_is_completed_by_people_and_read_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, sample = write(tmp_path / "a.jsonl", record(looked_at=0)), tmp_path / "sample.jsonl"
    assert main(["ptb", "review", str(whole), "--sample", str(sample)]) == 1
    lines = [json.loads(line) for line in sample.read_text(encoding="utf-8").splitlines()]
    assert len(lines) == 50
    assert {"question", "gold", "answer", "worth", "why"} <= lines[0]["shown"].keys()
    assert main(["ptb", "review", str(whole), str(sample)]) == 1, "nobody has looked at it"
    for line in lines:
        line.update(score_is_right=True, reason="read it", by="a person")
    sample.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert main(["ptb", "review", str(whole), str(sample)]) == 0
    capsys.readouterr()
    assert main(["ptb", "review", str(whole), "--sample", str(sample)]) == 2
    assert "may hold what people found" in capsys.readouterr().err
    assert [json.loads(line) for line in sample.read_text(encoding="utf-8").splitlines()] == lines


@pytest.mark.parametrize(("version", "standing"), [("number-1", "pass"), ("number-0", "unknown")])
def test_our_scorers_are_put_to_the_known_cases_of_what_they_scored(
    tmp_path: Path, version: str, standing: str, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = record(setups=[setup(conformance=None)])
    on = whole.bases[0].model_copy(update={"scorers": {"gsm8k": version, "bfcl": "call-1"}})
    moved = [each.model_copy(update={"basis": on.key}) for each in whole.cells]
    whole = whole.model_copy(update={"bases": (on,), "cells": tuple(moved)})
    main(["ptb", "review", str(write(tmp_path / "a.jsonl", whole)), "--our-scorers", "--json"])
    findings = {each["id"]: each for each in json.loads(capsys.readouterr().out)["findings"]}
    assert findings["S1"]["standing"] == standing


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (lambda whole: [TrialRecord(trial="nobody's")], "has no cell"),
        (lambda whole: [SetupRecord(basis="0" * 64)], "which no basis here has"),
        (lambda whole: [whole.trials[0].model_copy(update={"rules": "v1.0"})], "say different things of trial"),
        (lambda whole: [whole.audited[0].model_copy(update={"by": "another"})], "say different things of answer"),
        (lambda whole: [whole.setups[0].model_copy(update={"planned_runs": 9})], "say different things of the key"),
        (lambda whole: [whole.cells[-1].model_copy(update={"raw": 3.0})], "two records of one cell"),
        (lambda whole: [whole.cells[-1].model_copy(update={"run_set": "other"})], "two cells have the trial"),
    ],
)
def test_a_record_that_contradicts_itself_is_refused(
    tmp_path: Path, lines: Callable[[ReviewRecord], list[TrialRecord | SetupRecord | Audited]], says: str
) -> None:
    whole = record()
    path = write(tmp_path / "a.jsonl", whole)
    more = tmp_path / "b.jsonl"
    more.write_text("".join(each.model_dump_json() + "\n" for each in lines(whole)), encoding="utf-8")
    with pytest.raises(BrokenRecord, match=says):
        read_record([path, more])


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"kind": "trial"}', "line 1 is none of basis, cell, trial, setup, audited: trial.trial: Field required"),
        ('{"kind": "trial", "trial": "t", "temprature": 1}', "temprature: Extra inputs"),
        (
            '{"kind": "audited", "unit": "u", "score_is_right": true, "reason": "", "by": ""}',
            "without a reason or a name",
        ),
        ("", "no agent has a trial"),
    ],
)
def test_a_file_that_holds_no_record_is_a_usage_error(
    tmp_path: Path, line: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(line + "\n", encoding="utf-8")
    assert main(["ptb", "review", str(path)]) == 2
    assert says in capsys.readouterr().err
    assert main(["ptb", "review", str(tmp_path / "none.jsonl")]) == 2
    assert "none.jsonl cannot be read" in capsys.readouterr().err
