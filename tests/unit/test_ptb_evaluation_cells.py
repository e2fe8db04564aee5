"""Results of evaluations as cells: what a leaderboard is told of scores, failures and judges that erred."""

from pathlib import Path

import pytest

from stepwell.ptb.benchmarks.files import FilesOfBenchmark
from stepwell.ptb.evaluation import (
    Answer,
    EngineSettings,
    EvaluationOrder,
    EvaluationResult,
    ItemOutcome,
    PassResult,
)
from stepwell.ptb.evaluation.cells import CellOf, NoReference, cell_of, evaluation_basis
from stepwell.ptb.evaluation.versions import identity_of
from stepwell.ptb.leaderboard import Basis, Configuration, Flag
from stepwell.ptb.regimes import Regime
from tests.ptb_results import configuration
from tests.ptb_submissions import BASE_MODEL, gsm8k_files, order_for

AGENT = CellOf(run_set="r1", trial="t-1", configuration=configuration("alpha"))


def regime(**fields: object) -> Regime:
    said: dict[str, object] = {
        "name": "by hand",
        "since": "2026-11",
        "rules": "v1.1",
        "base_models": (BASE_MODEL,),
        "hours": 1.0,
        "seeds": (1, 2),
        "judge_seeds": 1,
        "judge": "none",
        "judge_effort": "none",
        "checks": (),
        "votes": 1,
        "max_tokens": {"gsm8k": (100, 50)},
        "weights": {"gsm8k": 0.9999999999},
    }
    return Regime.model_validate(said | fields)


@pytest.fixture
def basis(tmp_path: Path) -> Basis:
    files = {"gsm8k": FilesOfBenchmark(gsm8k_files(tmp_path / "rows"), 3)}
    return evaluation_basis(regime(), files, EngineSettings(), gpus=0)


def passed(seed: int, *values: float | None) -> PassResult:
    """A pass whose answers are worth these."""
    known = [value for value in values if value is not None]
    whole = len(known) == len(values)
    return PassResult(
        seed=seed,
        points=100 * sum(known) / len(values) if whole else None,
        low=100 * sum(known) / len(values),
        high=100 * (sum(known) + len(values) - len(known)) / len(values),
        unscored=len(values) - len(known),
        disagreeing=0,
        items=tuple(
            ItemOutcome(
                item=f"gsm8k/{number}",
                seed=number,
                answer=Answer(text="7", end="length", prompt_tokens=3, tokens=1),
                value=value,
                why="by hand",
                weight=1.0,
            )
            for number, value in enumerate(values)
        ),
    )


def result(*passes: PassResult, failure: str | None = None) -> EvaluationResult:
    return EvaluationResult(
        base_model=BASE_MODEL,
        benchmark="gsm8k",
        rows=3,
        data="d",
        submission=None,
        max_tokens=None if failure else 50,
        passes=passes,
        failure=failure,
    )


def test_a_cell_is_the_mean_of_its_passes_under_the_limit_that_gave_it(basis: Basis) -> None:
    cell = cell_of(result(passed(1, 1, 0, 0.5), passed(2, 0, 0, 0)), basis, AGENT)
    assert (cell.raw, cell.status, cell.max_tokens) == (25.0, "clean", 50)
    assert [(one.seed, one.points) for one in cell.passes] == [(1, 50.0), (2, 0.0)]


def test_a_flag_leaves_the_raw_score(basis: Basis) -> None:
    flagged = CellOf("r1", "t-1", configuration=configuration(), flags=[Flag(check="model", reason="instruct")])
    cell = cell_of(result(passed(1, 1)), basis, flagged)
    assert (cell.raw, cell.status) == (100.0, "flagged")


def test_an_answer_without_a_score_leaves_the_cell_unscored_and_a_failure_is_a_failure(basis: Basis) -> None:
    unscored = cell_of(result(passed(1, 1, None), passed(2, 1, 1)), basis, AGENT)
    assert (unscored.raw, unscored.unscored, unscored.status) == (None, 1, "unscored")
    failed = cell_of(result(failure="there is no tokenizer.json"), basis, AGENT)
    assert (failed.raw, failed.failure, failed.status) == (None, "there is no tokenizer.json", "failed")


@pytest.mark.parametrize(
    ("found", "reason"),
    [(result(failure="no weights"), "no weights"), (result(passed(1, None)), "1 answers could not be scored")],
)
def test_a_reference_without_a_score_is_none(basis: Basis, found: EvaluationResult, reason: str) -> None:
    with pytest.raises(NoReference, match=reason):
        cell_of(found, basis, CellOf("base", "base", role="base"))


def test_some_rows_and_another_arithmetic_have_another_key_and_threads_have_not(tmp_path: Path) -> None:
    paths = gsm8k_files(tmp_path / "rows")

    def key(rows: int | None = None, **engine: object) -> str:
        files = {"gsm8k": FilesOfBenchmark(paths, rows)}
        return evaluation_basis(regime(), files, EngineSettings.model_validate(engine), gpus=0).key

    assert len({key(), key(3), key(2), key(dtype="bfloat16"), key(max_context=100)}) == 5
    assert key() == key(threads=2, at_once=3)


def test_an_evaluation_is_known_by_contents_and_not_by_places(tmp_path: Path) -> None:
    one = order_for(tmp_path / "model", gsm8k_files(tmp_path / "here"))
    there = order_for(tmp_path / "elsewhere", gsm8k_files(tmp_path / "there"))
    of = {"model": "digest"}
    assert identity_of(one, of, None) == identity_of(there, of, None)
    for changed in (
        one.model_copy(update={"seeds": (1,)}),
        one.model_copy(update={"rows": 2}),
        one.model_copy(update={"engine": EngineSettings(threads=2)}),
    ):
        assert identity_of(changed, of, None) != identity_of(one, of, None)
    assert identity_of(one, {"model": "other"}, None) != identity_of(one, of, None)
    assert identity_of(one, of, "a judge") != identity_of(one, of, None)


def test_an_order_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    files = gsm8k_files(tmp_path / "rows")
    for fields, reason in (
        ({"seeds": (1, 1)}, "a seed stands twice"),
        ({"max_tokens": (10, 20)}, "each limit must be below the one before"),
        ({"rows": 0}, "greater than or equal to 1"),
    ):
        with pytest.raises(ValueError, match=reason):
            EvaluationOrder.model_validate({**order_for(tmp_path, files).model_dump(), **fields})


def test_a_reference_has_no_configuration(basis: Basis) -> None:
    of = CellOf("base", "base", role="base", configuration=Configuration.model_validate(configuration().model_dump()))
    with pytest.raises(ValueError, match="a reference has none"):
        cell_of(result(passed(1, 1)), basis, of)
