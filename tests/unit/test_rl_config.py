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
        ({"importance": "tis", "importance_max": 0.9}, "must enclose 1"),
        ({"importance": "icepop", "importance_min": 1.5}, "must enclose 1"),
        ({"force_on_policy_ratio": False, "importance": "icepop"}, "correct twice"),
        ({"force_on_policy_ratio": False, "importance_min": 0.5}, "importance_min would do nothing"),
        ({"loss": "gspo"}, 'loss = "gspo" would do nothing'),
        ({"loss": "cispo", "importance": "tis"}, 'loss = "cispo" would do nothing'),
        ({"loss": "ppo"}, "'grpo', 'gspo' or 'cispo'"),
        ({"loss": ["grpo"]}, "'grpo', 'gspo' or 'cispo'"),
        ({"loss_scale_factor": 384}, "loss_scale_factor would do nothing"),
        ({"loss_agg_mode": "seq_mean_token_sum_norm"}, "needs loss_scale_factor"),
        ({"overlong_buffer_length": 4}, "needs max_response_length"),
        ({"overlong_buffer_length": 5, "max_response_length": 4}, "is above max_response_length 4"),
        ({"overlong_buffer_penalty": 1.0}, "overlong_buffer_penalty would do nothing"),
        ({"max_response_length": 10}, "max_response_length would do nothing"),
        ({"dynamic_sampling": True}, "Extra inputs"),
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


@pytest.mark.parametrize(
    ("loss", "low", "high", "mean"),
    [
        ("grpo", 0.2, 0.28, "token_mean"),
        ("gspo", 3e-4, 4e-4, "seq_mean_token_mean"),
        ("cispo", None, 4.0, "token_mean"),
    ],
)
def test_clip_defaults_come_with_the_ratio_that_they_bound(
    loss: str, low: float | None, high: float, mean: str
) -> None:
    config = GrpoConfig.model_validate({"loss": loss, "force_on_policy_ratio": False})
    assert (config.clip_low, config.clip_high, config.importance, config.loss_agg_mode) == (low, high, None, mean)


@pytest.mark.parametrize(("importance", "low", "high"), [("tis", None, 2.0), ("icepop", 0.5, 5.0)])
def test_bounds_come_with_the_correction_that_has_them(importance: str, low: float | None, high: float) -> None:
    config = GrpoConfig.model_validate({"importance": importance})
    assert (config.importance_min, config.importance_max) == (low, high)


def test_algorithm_recorded_before_a_key_existed_reads_as_what_it_was() -> None:
    added = {
        "loss": "grpo",
        "loss_agg_mode": "token_mean",
        "loss_scale_factor": None,
        "overlong_buffer_length": None,
        "overlong_buffer_penalty": None,
        "max_response_length": None,
    }
    for config in (GrpoConfig(), GrpoConfig(force_on_policy_ratio=False)):
        before = {key: value for key, value in config.model_dump(mode="json").items() if key not in added}
        assert GrpoConfig.model_validate(before) == config
        assert {key: getattr(config, key) for key in added} == added


@pytest.mark.parametrize(
    "config",
    [
        GrpoConfig(),
        GrpoConfig(force_on_policy_ratio=False),
        GrpoConfig(importance="none", normalise="none", mismatch_max=None),
        GrpoConfig(importance="tis", loss_agg_mode="seq_mean_token_sum_norm", loss_scale_factor=384),
        GrpoConfig(importance="icepop", overlong_buffer_length=16, max_response_length=96),
        GrpoConfig(force_on_policy_ratio=False, loss="gspo"),
        GrpoConfig(force_on_policy_ratio=False, loss="cispo"),
        OptimiserConfig(learning_rate=1e-3),
        OptimiserConfig(learning_rate=1e-3, decay="linear", decay_steps=7),
        PackingConfig(),
    ],
)
def test_resolved_config_validates_to_itself(config: GrpoConfig | OptimiserConfig | PackingConfig) -> None:
    assert type(config).model_validate(config.model_dump(mode="json")) == config
