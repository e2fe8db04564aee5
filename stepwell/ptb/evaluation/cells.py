"""Results of evaluations as lines of a results file: the basis that they stand on, and a cell each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from stepwell.ptb.basis import basis_of
from stepwell.ptb.benchmarks.files import FilesOfBenchmark
from stepwell.ptb.evaluation.order import EngineSettings
from stepwell.ptb.evaluation.result import EvaluationResult
from stepwell.ptb.evaluation.versions import data_of, evaluation_environment
from stepwell.ptb.leaderboard import Basis, Cell, Configuration, Flag, Pass
from stepwell.ptb.regimes import Regime

Role = Literal["agent", "base", "instruct", "few_shot"]
Ended = Literal["itself", "time", "tokens", "money", "crash"]


class NoReference(ValueError):
    """A model that others are to be compared with has no score."""


@dataclass(frozen=True)
class CellOf:
    """Whose cell an evaluation's result is."""

    run_set: str
    trial: str
    role: Role = "agent"
    configuration: Configuration | None = None
    """Of an agent's trial."""
    flags: Sequence[Flag] = ()
    """What checks found."""
    ended: Ended | None = None
    """What ended the agent."""


def evaluation_basis(
    regime: Regime,
    files: Mapping[str, FilesOfBenchmark],
    engine: EngineSettings,
    *,
    gpus: int,
    judge: str | None = None,
    checks: Sequence[str] = (),
) -> Basis:
    """What all scores that are made by `evaluate_submission` under a regime share.

    Args:
        regime: Whose rules, benchmarks, models, seeds and weights they are.
        files: By benchmark, at least those of the regime.
        engine: What generates the answers.
        gpus: Of one agent.
        judge: Version of the judge of answers.
        checks: Versions of the checks that every cell is put to.

    Raises:
        ValueError: a benchmark lacks its files, or needs a judge that is not named.
        NoTemplate: a base model has no declared template.
    """
    basis = basis_of(
        regime,
        {name: one.paths for name, one in files.items()},
        gpus=gpus,
        environment=evaluation_environment(engine),
        judge=judge,
        checks=tuple(checks),
    )
    data = {name: data_of(files[name].paths, files[name].rows) for name in basis.data}
    return basis.model_copy(update={"data": data})


def cell_of(result: EvaluationResult, basis: Basis, of: CellOf) -> Cell:
    """The record of a cell.

    Raises:
        NoReference: it is a reference's, and there is no score.
    """
    if of.role != "agent" and result.points is None:
        why = result.failure or f"{result.unscored} answers could not be scored"
        raise NoReference(
            f"the {of.role} model has no score on {result.benchmark}, so nothing can be compared with it: {why}"
        )
    passes = [Pass(seed=one.seed, points=one.points) for one in result.passes if one.points is not None]
    return Cell(
        basis=basis.key,
        role=of.role,
        configuration=of.configuration,
        run_set=of.run_set,
        trial=of.trial,
        base_model=result.base_model,
        benchmark=result.benchmark,
        raw=result.points,
        passes=tuple(passes),
        unscored=result.unscored,
        max_tokens=result.max_tokens,
        flags=tuple(of.flags),
        failure=result.failure,
        ended=of.ended,
    )
