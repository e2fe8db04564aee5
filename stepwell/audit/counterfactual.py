"""Another algorithm over the same history: which keys of a recipe change advantages and masks, and which cannot."""

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from stepwell.audit.recipe import AuditedRecipe
from stepwell.nearest_names import did_you_mean
from stepwell.rl.config import GrpoConfig

COMPUTED: Mapping[str, str] = {
    "rl.estimator": "a named pair of the next two",
    "rl.baseline": "what a reward is compared with",
    "rl.normalise": "what an advantage is divided by",
    "rl.std_epsilon": "what is added to the divisor",
    "rl.overlong_filtering": "whether rollouts that were cut off are masked",
    "rl.shuffle_rewards": "whether rewards are dealt anew in each group, as a control",
    "rl.overlong_buffer_length": "over how many tokens a long rollout's reward falls",
    "rl.overlong_buffer_penalty": "by how much it falls",
    "rl.max_response_length": "at how many tokens it has fallen",
}
"""Keys that decide advantages and masks, with what they are."""

ESTIMATORS: Mapping[str, Mapping[str, str]] = {
    "mlperf": {"baseline": "leave_one_out", "normalise": "baseline_std"},
    "grpo": {"baseline": "group_mean", "normalise": "group_std"},
    "rloo": {"baseline": "leave_one_out", "normalise": "none"},
    "dr_grpo": {"baseline": "group_mean", "normalise": "none"},
}
"""`mlperf`: MLPerf Training v6.1; `grpo`: arXiv 2402.03300; `rloo`: arXiv 2402.14740; `dr_grpo`: arXiv 2503.20783, its
advantages."""

_IN_THE_TRAINER = (
    "acts in the loss, on ratios of the trainer's log-probabilities, of which the ledger holds means alone: that needs "
    "the model. `stepwell audit retrain` computes them again"
)
NEEDS_A_MODEL = frozenset(
    {
        "rl.loss",
        "rl.loss_agg_mode",
        "rl.loss_scale_factor",
        "rl.force_on_policy_ratio",
        "rl.clip_low",
        "rl.clip_high",
        "rl.importance",
        "rl.importance_min",
        "rl.importance_max",
        "rl.mismatch_max",
    }
)
"""Keys of `rl` that work in the loss."""


class NotComputable(ValueError):
    """A setting that changes no advantage and no mask, or cannot be; says which can."""


def counterfactual_recipe(recipe: AuditedRecipe, settings: Sequence[str]) -> AuditedRecipe:
    """A recipe with other settings of its algorithm.

    Args:
        recipe: The run's.
        settings: As `rl.baseline=group_mean`, values in TOML; bare words are strings.

    Raises:
        NotComputable: a key that changes nothing here, a value that is not allowed, or no change at all.
    """
    changed: dict[str, Any] = {}
    for setting in settings:
        key, value = _parsed(setting)
        if key == "rl.estimator":
            changed |= _estimator(value)
        else:
            changed[key.removeprefix("rl.")] = value
    algorithm = recipe.rl.model_dump() | changed
    if algorithm["normalise"] == "none" and "std_epsilon" not in changed:
        algorithm["std_epsilon"] = None
    try:
        rl = GrpoConfig.model_validate(algorithm)
    except ValidationError as error:
        raise NotComputable("; ".join(_explained(dict(item)) for item in error.errors(include_url=False))) from None
    if rl == recipe.rl:
        raise NotComputable(f"{' '.join(settings)}: the run's recipe has these settings already")
    return recipe.model_copy(update={"rl": rl})


def differences(recipe: AuditedRecipe, other: AuditedRecipe) -> dict[str, tuple[object, object]]:
    """Keys of the algorithm in which two recipes differ, with both values."""
    ours, theirs = recipe.rl.model_dump(mode="json"), other.rl.model_dump(mode="json")
    return {f"rl.{key}": (ours[key], theirs[key]) for key in ours if ours[key] != theirs[key]}


def _parsed(setting: str) -> tuple[str, Any]:
    key, equals, text = (part.strip() for part in setting.partition("="))
    if not equals or not key or not text:
        raise NotComputable(f"--set {setting}: wanted KEY=VALUE, for example rl.baseline=group_mean")
    if key in NEEDS_A_MODEL:
        raise NotComputable(f"{key} changes no advantage: it {_IN_THE_TRAINER}. {_allowed()}")
    if key not in COMPUTED:
        meant = did_you_mean(key, COMPUTED)
        raise NotComputable(
            f"{key} changes no advantage and no mask of what is recorded{f': {meant}' if meant else ''}. {_allowed()}"
        )
    try:
        return key, tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return key, text


def _estimator(name: Any) -> Mapping[str, str]:
    if name not in ESTIMATORS:
        meant = did_you_mean(str(name), ESTIMATORS)
        known = "; ".join(f"{each} ({pair['baseline']}, {pair['normalise']})" for each, pair in ESTIMATORS.items())
        raise NotComputable(f"rl.estimator = {name!r}: {f'{meant} ' if meant else ''}there are {known}")
    return ESTIMATORS[name]


def _explained(item: Mapping[str, Any]) -> str:
    message = str(item["msg"]).removeprefix("Value error, ")
    location = [str(part) for part in item["loc"]]
    return f"rl.{'.'.join(location)} = {item['input']!r}: {message}" if location else f"rl: {message}"


def _allowed() -> str:
    return f"Keys that do: {', '.join(COMPUTED)}"
