"""Configs refuse what would do nothing, and survive a round trip."""

import pytest
from pydantic import ValidationError

from stepwell.rl.config import GrpoConfig, OptimiserConfig, PackingConfig


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"clip_low": 0.2}, "clip_low would do nothing"),
        ({"clip_high": 0.28, "force_on_policy_ratio": True}, "clip_high would do nothing"),
        ({"force_on_policy_ratio": False, "importance": "seq_mask_tis"}, "correct twice"),
        ({"importance": "none", "importance_max": 2.0}, "importance_max would do nothing"),
        ({"normalise": "none", "std_epsilon": 1e-6}, "std_epsilon would do nothing"),
        ({"importance_min": 1.1}, "must enclose 1"),
        ({"importance_max": 0.9995}, "must enclose 1"),
        ({"clip": 0.2}, "Extra inputs"),
    ],
)
def test_grpo_setting_without_effect_is_refused_with_the_reason(settings: dict[str, object], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        GrpoConfig.model_validate(settings)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"decay_steps": 10}, "decay_steps would do nothing"),
        ({"final_fraction": 0.1}, "final_fraction would do nothing"),
        ({"decay": "linear"}, "needs decay_steps"),
        ({"lr": 1.0}, "Extra inputs"),
        ({"beta1": 1.0}, "less than 1"),
        ({"max_grad_norm": float("inf")}, "finite"),
    ],
)
def test_optimiser_setting_without_effect_is_refused_with_the_reason(settings: dict[str, object], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        OptimiserConfig.model_validate({"learning_rate": 1e-3, **settings})


def test_benchmark_values_are_the_defaults() -> None:
    config = GrpoConfig()
    assert (config.importance, config.importance_min, config.importance_max) == ("seq_mask_tis", 0.999, 1.002)
    assert (config.mismatch_max, config.std_epsilon, config.clip_low) == (2.0, 1e-6, None)


def test_clip_defaults_come_with_the_ratio_that_they_bound() -> None:
    config = GrpoConfig(force_on_policy_ratio=False)
    assert (config.clip_low, config.clip_high, config.importance) == (0.2, 0.28, None)


@pytest.mark.parametrize(
    "config",
    [
        GrpoConfig(),
        GrpoConfig(force_on_policy_ratio=False),
        GrpoConfig(importance="none", normalise="none", mismatch_max=None),
        OptimiserConfig(learning_rate=1e-3),
        OptimiserConfig(learning_rate=1e-3, decay="linear", decay_steps=7),
        PackingConfig(),
    ],
)
def test_resolved_config_validates_to_itself(config: GrpoConfig | OptimiserConfig | PackingConfig) -> None:
    assert type(config).model_validate(config.model_dump(mode="json")) == config
