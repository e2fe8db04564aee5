"""A study's seeds: after how many samples each reached the target, how much they scatter, and the reference convergence
points that follow, in the form that `mlperf_logging.rcp_checker` reads."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stepwell.mlperf.recipe_settings import data_parallelism

LEAST_CONVERGED = 3
"""The checker leaves out a point's best and worst run, and needs one more."""
PRECISION = {"bfloat16": "BF16", "float32": "FP32"}
"""Names of a recipe's types in a point."""


@dataclass(frozen=True)
class Evaluation:
    """One validated version."""

    version: int
    """Weight version: steps trained."""
    samples: int
    """Rollouts a task."""
    pass_1: float
    """Mean over tasks of the share of samples that pass."""
    pass_k: float
    """Share of tasks that any sample passes."""
    pass_all: float
    """Share of tasks that every sample passes: pass^k."""


@dataclass(frozen=True)
class SeedResult:
    """One run of a study."""

    seed: int
    run: str
    """Its name."""
    end: str
    """Why it ended."""
    batch: int
    """Rollouts of a step."""
    target: float
    """pass@k that must be exceeded."""
    evaluations: tuple[Evaluation, ...]
    """In order of their versions."""

    @property
    def passed(self) -> Evaluation | None:
        """The lowest version above the target; None if there is none."""
        return next((each for each in self.evaluations if each.pass_k > self.target), None)

    @property
    def samples_to_target(self) -> int | None:
        """Rollouts trained up to that version, each step counted whole; None if the target was not reached."""
        return None if self.passed is None else self.passed.version * self.batch

    @property
    def judged(self) -> Evaluation | None:
        """The evaluation that the seed is compared by: the one that passed, else the last."""
        return self.passed or (self.evaluations[-1] if self.evaluations else None)


@dataclass(frozen=True)
class Spread:
    """How a score scatters over seeds."""

    mean: float
    deviation: float
    """Sample standard deviation, with n - 1."""

    @property
    def variation(self) -> float | None:
        """Coefficient of variation: deviation over mean; None where the mean is 0."""
        return self.deviation / self.mean if self.mean else None


def spread(values: Sequence[float]) -> Spread | None:
    """Of two values or more; None of fewer."""
    if len(values) < 2:
        return None
    return Spread(mean=math.fsum(values) / len(values), deviation=statistics.stdev(values))


def spreads(results: Sequence[SeedResult]) -> dict[str, Spread | None]:
    """Of `pass_k`, `pass_1` and `pass_all`, over the evaluations that the seeds are compared by."""
    judged = [each for result in results if (each := result.judged) is not None]
    return {name: spread([getattr(each, name) for each in judged]) for name in ("pass_k", "pass_1", "pass_all")}


def reference_points(
    results: Sequence[SeedResult], *, benchmark: str, creator: str, platform: str, recipe: Mapping[str, Any]
) -> dict[str, Any]:
    """The study's point, keyed as the official files key theirs ("epochs" are samples in this benchmark). Seeds that
    did not converge are no part of it.

    Args:
        results: Of all seeds.
        benchmark: Its name in the rules.
        creator: Who ran the study.
        platform: On what.
        recipe: The study's resolved recipe, in JSON form.

    Raises:
        ValueError: fewer than three seeds converged.
    """
    samples = sorted(each for result in results if (each := result.samples_to_target) is not None)
    if len(samples) < LEAST_CONVERGED:
        raise ValueError(
            f"{len(samples)} of {len(results)} seeds reached the target, and a reference convergence point needs "
            f"{LEAST_CONVERGED}: run more seeds, or longer ones"
        )
    run, batch = recipe["run"], results[0].batch
    replicas = data_parallelism(recipe)
    point = {
        "Benchmark": benchmark,
        "Creator": creator,
        "When": f"Study of recipe {recipe['name']}, {len(results)} seeds",
        "Platform": platform,
        "Precision": PRECISION[recipe["trainer"]["compute_dtype"]],
        "BS": batch,
        "Hyperparams": {
            "opt_base_learning_rate": recipe["optimiser"]["learning_rate"],
            "opt_gradient_clip_norm": recipe["optimiser"]["max_grad_norm"],
            "num_prompts_per_step": run["prompts_per_step"],
            "num_generations_per_prompt": run["samples_per_prompt"],
            "gradient_accumulation_steps": max(1, batch // replicas),
        },
        "Epochs to converge": samples,
    }
    return {f"{benchmark}_ref_{batch}": point}
