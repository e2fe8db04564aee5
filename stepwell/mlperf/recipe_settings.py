"""What a resolved recipe says of the settings that a log must have.

It is read as the ledger stores it, not as today's model would have it: a recipe of another Stepwell is logged too, as
long as it has the keys.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from stepwell.mlperf.benchmark_log import NotLoggable, Value

PRECISION = {"bfloat16": "bfloat16", "float32": "fp32"}
"""Names of the rules by ours, the lowest first."""
CHANGEABLE = {"optimiser.learning_rate": "opt_base_learning_rate"}
"""Keys that an operator can set while a run goes on, and that a log has one value for."""


class Told(NamedTuple):
    """A value, and what says it."""

    value: Value
    """None where the recipe does not say it."""
    said_by: str
    """Keys of the recipe."""


def value_at(recipe: Mapping[str, Any], path: str, default: Value = None) -> Any:
    """A value of a recipe; the default where it is null or not there."""
    found: Any = recipe
    for name in path.split("."):
        found = cast(Mapping[str, Any], found).get(name) if isinstance(found, Mapping) else None
    return default if found is None else found


def required(recipe: Mapping[str, Any], path: str) -> Any:
    """A value that every recipe has.

    Raises:
        NotLoggable: this one has not.
    """
    found = value_at(recipe, path)
    if found is None:
        raise NotLoggable(f"{path}: the run's recipe does not say it, and the log needs it")
    return found


def settings_of(recipe: Mapping[str, Any]) -> dict[str, Told]:
    """Settings by the log's key, in its order: the batch comes before the rates that depend on it.

    Raises:
        NotLoggable: the recipe lacks a key.
    """
    prompts, generations = required(recipe, "run.prompts_per_step"), required(recipe, "run.samples_per_prompt")
    found = {
        "seed": Told(required(recipe, "run.seed"), "recipe.run.seed"),
        "max_steps": Told(required(recipe, "run.max_steps"), "recipe.run.max_steps"),
        "global_batch_size": Told(prompts * generations, "recipe.run.prompts_per_step, recipe.run.samples_per_prompt"),
        "max_sequence_length": Told(required(recipe, "agent.max_context_tokens"), "recipe.agent.max_context_tokens"),
        **_optimiser(recipe),
        **_parallelism(recipe),
        **_precision(recipe),
        **_generation(recipe),
        "num_prompts_per_step": Told(prompts, "recipe.run.prompts_per_step"),
        "num_generations_per_prompt": Told(generations, "recipe.run.samples_per_prompt"),
        **_importance(recipe),
    }
    target = value_at(recipe, "validation.target")
    if target is None:
        raise NotLoggable("validation.target: the recipe has none; the benchmark's run ends above 0.69")
    return found | {"target_accuracy": Told(target, "recipe.validation.target")}


def _optimiser(recipe: Mapping[str, Any]) -> dict[str, Told]:
    rate = required(recipe, "optimiser.learning_rate")
    schedule = required(recipe, "optimiser.decay")
    end = rate if schedule == "constant" else rate * value_at(recipe, "optimiser.final_fraction", 0.0)
    settings = {"opt_name": Told("adamw", "recipe.optimiser")}
    for key, path in (
        ("opt_base_learning_rate", "learning_rate"),
        ("opt_adamw_beta_1", "beta1"),
        ("opt_adamw_beta_2", "beta2"),
        ("opt_adamw_epsilon", "epsilon"),
        ("opt_adamw_weight_decay", "weight_decay"),
        ("opt_gradient_clip_norm", "max_grad_norm"),
        ("opt_learning_rate_warmup_steps", "warmup_steps"),
        ("opt_learning_rate_decay_schedule", "decay"),
    ):
        settings[key] = Told(value_at(recipe, f"optimiser.{path}"), f"recipe.optimiser.{path}")
    settings["opt_end_learning_rate"] = Told(end, "recipe.optimiser.learning_rate, recipe.optimiser.final_fraction")
    if schedule != "constant":
        steps = required(recipe, "optimiser.decay_steps")
        settings["opt_learning_rate_decay_steps"] = Told(steps, "recipe.optimiser.decay_steps")
    return settings


def data_parallelism(recipe: Mapping[str, Any]) -> int:
    """Copies of the model, among which a step's micro-batches are dealt."""
    return value_at(recipe, "trainer.data_parallel") or value_at(recipe, "trainer.ranks", 1)


def _parallelism(recipe: Mapping[str, Any]) -> dict[str, Told]:
    """Torch's ranks each hold the whole model; Megatron's are cut as its keys say, and nowhere else. What another
    backend does, or one whose recipe does not say it, the submitter declares."""
    backend = value_at(recipe, "trainer.backend", "torch")
    is_said = backend == "torch" or value_at(recipe, "trainer.tensor_parallel") is not None
    return {
        f"{kind}_parallelism": Told(
            value_at(recipe, f"trainer.{kind}_parallel", 1) if is_said else None, f"recipe.trainer.{kind}_parallel"
        )
        for kind in ("tensor", "pipeline", "context", "expert")
    }


def _precision(recipe: Mapping[str, Any]) -> dict[str, Told]:
    """The lower one of trainer and engines; None if one is of a kind that is not known here."""
    names = [value_at(recipe, "trainer.compute_dtype"), value_at(recipe, "engine.dtype")]
    known = [name for name in PRECISION if name in names]
    lowest = PRECISION[known[0]] if set(names) <= set(PRECISION) else None
    told = Told(lowest, "recipe.trainer.compute_dtype, recipe.engine.dtype")
    return {f"lowest_numerical_precision_in_{part}": told for part in ("linear", "attn")}


def _generation(recipe: Mapping[str, Any]) -> dict[str, Told]:
    settings = {
        "generation_backend": Told(required(recipe, "engine.kind"), "recipe.engine.kind"),
        "generation_tensor_parallelism": Told(
            value_at(recipe, "engine.tensor_parallel", 1), "recipe.engine.tensor_parallel"
        ),
    }
    for use, section in (("training", "sampling"), ("validation", "validation")):
        for name in ("temperature", "top_p"):
            told = Told(required(recipe, f"{section}.{name}"), f"recipe.{section}.{name}")
            settings[f"generation_{use}_rollout_{name}"] = told
    return settings


def _importance(recipe: Mapping[str, Any]) -> dict[str, Told]:
    kind = value_at(recipe, "rl.importance", "none")
    if kind == "none":
        return {}
    prefix, settings = "truncated_importance_sampling", dict[str, Told]()
    for key, path in ((f"{prefix}_ratio_min", "importance_min"), (f"{prefix}_ratio", "importance_max")):
        bound = value_at(recipe, f"rl.{path}")
        if bound is not None:
            settings[key] = Told(bound, f"recipe.rl.{path}")
    return settings | {f"{prefix}_type": Told(str(kind).replace("_", "-"), "recipe.rl.importance")}
