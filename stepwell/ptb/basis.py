"""The basis of scores that are made here: regime, data, scorers, templates, judge, environment."""

from collections.abc import Mapping
from pathlib import Path

from stepwell.ptb.benchmarks import benchmark
from stepwell.ptb.benchmarks.rows import digest_of_files
from stepwell.ptb.chat import template_of
from stepwell.ptb.leaderboard.records import Basis
from stepwell.ptb.regimes import Regime


def basis_of(
    regime: Regime,
    files: Mapping[str, Mapping[str, Path]],
    *,
    gpus: int,
    environment: str,
    judge: str | None = None,
    checks: tuple[str, ...] = (),
) -> Basis:
    """What all scores of a regime, made in one environment from the same files, share.

    Args:
        regime: Whose rules, benchmarks, models, seeds and weights they are.
        files: By benchmark, the files that it is loaded from.
        gpus: Of one agent.
        environment: Digest or name of the image that evaluations run in.
        judge: Version of the judge of answers.
        checks: Versions of the checks that every cell is put to.

    Raises:
        ValueError: a benchmark is unknown, lacks its files, or needs a judge that is not named.
        NoTemplate: a base model has no declared template.
    """
    declared = {name: benchmark(name) for name in regime.benchmarks}
    lacking = [name for name in declared if name not in files]
    if lacking:
        raise ValueError(f"no files are named for {', '.join(lacking)}: {regime.name} has them among its benchmarks")
    judged = [name for name, one in declared.items() if one.needs == "judge"]
    if judged and judge is None:
        raise ValueError(f"{', '.join(judged)} need a judge: name its version")
    return Basis(
        regime=regime.name,
        rules=regime.rules,
        hours=regime.hours,
        gpus=gpus,
        base_models=regime.base_models,
        weights=regime.weights,
        seeds=regime.seeds,
        data={name: digest_of_files(files[name]) for name in declared},
        scorers={name: one.scorer for name, one in declared.items()},
        templates={model: template_of(model).digest for model in regime.base_models},
        environment=environment,
        judge=judge,
        checks=checks,
    )
