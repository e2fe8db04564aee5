"""What MLCommons' own checkers say of logs that were derived from runs of ours."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from cli.main import main
from stepwell.events import RunCreated
from stepwell.mlperf import BENCHMARK, RULESET
from stepwell.mlperf.benchmark_log import BenchmarkLog
from stepwell.mlperf.convergence import Evaluation as Studied
from stepwell.mlperf.convergence import SeedResult, reference_points
from stepwell.mlperf.deriving import derive
from stepwell.mlperf.lines import lines_of, mllog_text
from stepwell.mlperf.log_comparison import first_difference
from stepwell.mlperf.official_checks import USAGE, check_compliance, check_convergence, check_package
from stepwell.mlperf.official_package import official
from stepwell.mlperf.packaging import PackageRefused, Result, write_package
from stepwell.mlperf.submission import SYSTEM_COUNTS, SYSTEM_FIELDS
from tests.benchmark_story import SUBMISSION, benchmark_recipe, benchmark_story, facts_of

CLOSED = SUBMISSION.model_copy(update={"submission_division": "closed"})
SYSTEM = (
    dict.fromkeys(SYSTEM_FIELDS, "")
    | dict.fromkeys(SYSTEM_COUNTS, "1")
    | {
        "submitter": "Example",
        "division": "closed",
        "status": "Research, Development, or Internal (RDI)",
        "system_name": "one",
    }
)


def logged(number: int = 0, *, solved: Sequence[int] = (180,), mode: str = "", **changes: dict) -> Result:
    """A run of its own seed, closed."""
    recipe = benchmark_recipe(**{"run": {"seed": number}, **changes})
    facts = facts_of(benchmark_story(f"rehearsal-{number}", recipe=recipe, solved=solved, mode=mode))
    return Result(facts, derive(facts, CLOSED))


def written(folder: Path, log: BenchmarkLog, name: str = "result_0.txt") -> Path:
    """The log in a file."""
    path = folder / name
    path.write_text(mllog_text(lines_of(log)), encoding="utf-8")
    return path


@pytest.mark.parametrize("mode", ["", "offline"])
@pytest.mark.parametrize("solved", [(180,), (100, 160, 175)])
def test_a_run_by_the_rules_passes_closed(mode: str, solved: Sequence[int], tmp_path: Path) -> None:
    verdict = check_compliance(written(tmp_path, logged(mode=mode, solved=solved).log))
    assert verdict.passed, verdict.messages


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"optimiser": {"learning_rate": 2e-6}}, "CHECK for 'opt_base_learning_rate' failed"),
        ({"validation": {"temperature": 0.2}}, "CHECK for 'generation_validation_rollout_temperature' failed"),
        ({"run": {"samples_per_prompt": 8}}, "CHECK for 'num_generations_per_prompt' failed"),
    ],
)
def test_a_run_by_other_settings_passes_open_and_not_closed(
    changes: dict[str, dict[str, object]], said: str, tmp_path: Path
) -> None:
    facts = facts_of(benchmark_story(recipe=benchmark_recipe(**changes), solved=(180,)))
    closed = check_compliance(written(tmp_path, derive(facts, CLOSED)))
    assert not closed.passed
    assert any(message.startswith(said) for message in closed.messages), closed.messages
    assert check_compliance(written(tmp_path, derive(facts, SUBMISSION))).passed


def test_a_run_that_was_aborted_fails(tmp_path: Path) -> None:
    verdict = check_compliance(written(tmp_path, logged(solved=(100, 173)).log))
    assert not verdict.passed
    assert "Failed checks for eval_accuracy" in verdict.messages[0]


def test_a_log_that_is_no_log_fails_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "result_0.txt"
    path.write_text(':::MLLOG {"time_ms": 1, "key": "seed", "value": 1}\n', encoding="utf-8")
    verdict = check_compliance(path)
    assert (verdict.passed, "cannot read a line" in verdict.messages[0]) == (False, True)


def test_convergence_is_that_of_the_reference_or_slower(tmp_path: Path) -> None:
    fast = [written(tmp_path, logged(number).log, f"{number}.txt") for number in range(3)]
    assert check_convergence(fast).messages[0] == "RCP found"
    assert check_convergence(fast).passed
    too_fast = logged(solved=(180,), run={"prompts_per_step": 8, "seed": 0})
    paths = [written(tmp_path, too_fast.log, f"fast{number}.txt") for number in range(3)]
    verdict = check_convergence(paths)
    assert (verdict.passed, verdict.messages[0]) == (False, "Missing RCP, please submit RCP with BS = 128")


@pytest.mark.parametrize(("version", "passed"), [(18, True), (30, False)])
def test_the_official_checker_compares_logs_with_a_studys_points(version: int, passed: bool, tmp_path: Path) -> None:
    each = Studied(version, 4, 0.7, 0.75, 0.5)
    results = [SeedResult(number, f"study-seed{number}", "target", 256, 0.69, (each,)) for number in range(3)]
    told = {"benchmark": BENCHMARK, "creator": "Example", "platform": "one machine", "recipe": benchmark_recipe()}
    (tmp_path / "rcps.json").write_text(json.dumps(reference_points(results, **told)), encoding="utf-8")
    for number in range(3):
        written(tmp_path, logged(number).log, f"result_{number}.txt")
    checker = official("rcp_checker.rcp_checker")
    with (tmp_path / "rcps.json").open(encoding="utf-8") as points:
        found = checker.check_directory(
            str(tmp_path), USAGE, RULESET, False, False, rcp_file=points, rcp_pass="pruned_rcps"
        )
    assert found[:2] == (passed, "RCP found"), "logs at version 18 are as good as points there, and too good for later"


def test_fewer_logs_than_a_submission_has_are_not_compared(tmp_path: Path) -> None:
    verdict = check_convergence([written(tmp_path, logged().log)])
    assert (verdict.passed, verdict.messages) == (False, ("1 log(s) given, 3 are a submission",))


def test_three_runs_are_a_package_that_passes(tmp_path: Path) -> None:
    results = [logged(number) for number in range(3)]
    folder = write_package(tmp_path, results, SYSTEM)
    assert [(verdict.passed, verdict.messages) for verdict in check_package(folder)] == [(True, ())] * 2
    files = sorted(str(path.relative_to(tmp_path)) for path in folder.rglob("*") if path.is_file())
    recipes = "Example/benchmarks/qwen35_397b_grpo/implementations/stepwell"
    config = next(setting.value for setting in results[0].log.settings if setting.key == "config_filename")
    assert f"{recipes}/{config}" in files
    assert [name for name in files if not name.startswith(recipes)] == [
        *(f"Example/results/one/qwen35_397b_grpo/result_{number}.txt" for number in range(3)),
        "Example/systems/one.json",
    ]
    last = [envelope for envelope, _ in results[0].facts.events if envelope.stream == "run/rehearsal-0"][-1]
    assert last.hash in (folder.parent / recipes / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("mode", "minutes"), [("", 18 - 1 / 60), ("offline", 18 - 5 / 60)])
def test_the_official_summary_of_a_package_has_the_time_to_where_the_clock_stops(
    mode: str, minutes: float, tmp_path: Path
) -> None:
    """From the dispatch of step 0 after 1 minute to the result after 18 minutes and 59 s, offline to the weight update
    4 s before."""
    folder = write_package(tmp_path, [logged(number, mode=mode) for number in range(3)], SYSTEM)
    summary, *_ = official("result_summarizer.result_summarizer").summarize_results(str(folder), USAGE, RULESET)
    assert summary[BENCHMARK].tolist() == [pytest.approx(minutes)]


def test_runs_of_one_seed_are_no_package(tmp_path: Path) -> None:
    same = benchmark_recipe(run={"seed": 5})
    facts = [facts_of(benchmark_story(f"same-{number}", recipe=same, solved=(180,))) for number in range(3)]
    folder = write_package(tmp_path, [Result(each, derive(each, CLOSED)) for each in facts], SYSTEM)
    verdict = check_package(folder)[1]
    assert not verdict.passed
    assert "logs seed 5" in "\n".join(verdict.messages)


def test_a_package_is_never_written_over_another_or_with_a_run_twice(tmp_path: Path) -> None:
    result = logged()
    with pytest.raises(PackageRefused, match="rehearsal-0 is named twice"):
        write_package(tmp_path, [result, result], SYSTEM)
    write_package(tmp_path, [result], SYSTEM)
    with pytest.raises(PackageRefused, match="is there already"):
        write_package(tmp_path, [result], SYSTEM)


def test_a_package_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    result = logged()
    (envelope, created), *rest = result.facts.events
    assert isinstance(created, RunCreated)
    unwritable = created.model_copy(update={"recipe": {**created.recipe, "odd": [None]}})
    second = replace(result.facts, run="rehearsal-1", events=[(envelope, unwritable), *rest])
    with pytest.raises(TypeError):
        write_package(tmp_path, [result, Result(second, result.log)], SYSTEM)
    assert list(tmp_path.iterdir()) == []


def test_an_unchanged_log_is_the_ledgers() -> None:
    once, again = (mllog_text(lines_of(logged().log)).splitlines() for _ in range(2))
    assert first_difference(once, again) is None


@pytest.mark.parametrize(
    ("key", "was", "now", "parts", "source"),
    [
        ("eval_accuracy", "0.7171314741035857", "0.7271314741035857", ("value",), "pass_k of run/rehearsal-0 #"),
        ("run_stop", '"time_ms": 178000', '"time_ms": 177000', ("time_ms",), "time of run/rehearsal-0 #"),
        ("seed", '"value": 0', '"value": 9', ("value",), "recipe.run.seed of run/rehearsal-0 #0"),
        ("submission_org", "Example", "Another", ("value",), "no event: the submitter declares submission_org"),
        ("block_stop", "run/rehearsal", "run/other", ("metadata.stream",), "time of weights/rehearsal-0 #18"),
    ],
)
def test_an_edited_line_is_found_with_its_event(
    key: str, was: str, now: str, parts: tuple[str, ...], source: str
) -> None:
    lines = lines_of(logged().log)
    text = mllog_text(lines).splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if line.key == key)
    was, now = (each.replace("run/", "weights/") if key == "block_stop" else each for each in (was, now))
    assert was in text[at], text[at]
    text[at] = text[at].replace(was, now, 1)
    difference = first_difference(mllog_text(lines).splitlines(), text)
    assert difference is not None
    assert (difference.number, difference.parts) == (at + 1, parts)
    assert difference.source.startswith(source)


def test_a_line_too_few_or_too_many_is_found() -> None:
    text = mllog_text(lines_of(logged().log)).splitlines()
    missing = first_difference(text, text[:-1])
    assert missing is not None
    assert (missing.number, missing.given, missing.source[:5]) == (len(text), None, "time ")
    more = first_difference(text, [*text, text[-1]])
    assert more is not None
    assert (more.number, more.derived, more.source.split()[2]) == (len(text) + 1, None, "run/rehearsal-0")


def test_the_command_runs_the_checkers_and_says_what_they_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(3):
        written(tmp_path, logged(number).log, f"result_{number}.txt")
    assert main(["mlperf", "check", "--rcp", "--json", str(tmp_path)]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["passed"], [each["checker"] for each in said["verdicts"]]) == (True, ["compliance"] * 3 + ["rcp"])
    written(tmp_path, logged(solved=(100,)).log, "result_1.txt")
    assert main(["mlperf", "check", "--rcp", str(tmp_path)]) == 1
    shown = capsys.readouterr().out
    assert f"FAIL  compliance  {tmp_path / 'result_1.txt'}" in shown
    assert shown.endswith("rcp: not run, since a log does not comply\n")


@pytest.mark.parametrize("named", ["nothing.txt", "."])
def test_a_log_that_is_not_there_is_wrong_usage(named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mlperf", "check", str(tmp_path / named)]) == 2
    assert str(tmp_path) in capsys.readouterr().err
