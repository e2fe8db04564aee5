"""What a recipe may say about the algorithm: advantages, loss, packing, optimiser.

A key that would do nothing under the other settings is refused with the reason, so that a recipe never lies. Optional
keys whose default depends on another key are None until that key asks for them; a resolved config validates again to
itself.
"""

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class _Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class GrpoConfig(_Config):
    """Group-relative policy optimisation, one update a batch, no KL term.

    The defaults are those of MLPerf Training v6.1 (`qwen35_397b_grpo`).
    """

    baseline: Literal["leave_one_out", "group_mean"] = "leave_one_out"
    """What a reward is compared with: the mean of the others of its group, or of the whole group."""
    normalise: Literal["baseline_std", "group_std", "none"] = "baseline_std"
    """What an advantage is divided by. `baseline_std`: the sample standard deviation of the rewards in the baseline (as
    the benchmark does; under `leave_one_out` the others', so that a lone success among failures keeps its raw
    advantage). `group_std`: that of the whole group. A deviation of 0 divides nothing."""
    std_epsilon: float | None = Field(default=None, gt=0)
    """Added to the standard deviation; 1e-6 unless given. Refused with `normalise = "none"`."""
    shuffle_rewards: bool = False
    """A control experiment: the rewards of each group are dealt anew among its rollouts before advantages are taken, so
    that there is nothing to learn. A run that reaches its target with this proves that its measure is broken."""
    overlong_filtering: bool = True
    """Mask rollouts that were cut off (context, wall clock) and those that solved the task but ran into the turn limit.
    """
    force_on_policy_ratio: bool = True
    """The ratio is 1 in value, its gradient that of the log-probability; staleness is left to `importance`. If false,
    the ratio is trainer over engine, clipped."""
    clip_low: float | None = Field(default=None, gt=0, lt=1)
    """Ratio is clipped below 1 - this; 0.2 unless given. Refused with `force_on_policy_ratio`."""
    clip_high: float | None = Field(default=None, gt=0)
    """Ratio is clipped above 1 + this; 0.28 unless given. Refused with `force_on_policy_ratio`."""
    importance: Literal["seq_mask_tis", "none"] | None = None
    """Correction of the difference between engine and trainer. `seq_mask_tis`, the default: each token weighs trainer
    over engine, and a sequence whose geometric mean of that is out of bounds weighs 0. Refused without
    `force_on_policy_ratio`, whose ratio already holds the correction."""
    importance_min: float | None = Field(default=None, gt=0)
    """Lower bound of the geometric mean; 0.999 unless given."""
    importance_max: float | None = Field(default=None, gt=0)
    """Upper bound of the geometric mean; 1.002 unless given."""
    mismatch_max: float | None = Field(default=2.0, ge=1)
    """A sequence whose mean of exp|trainer - engine| (log-probabilities) is above this is masked: it counts neither in
    the loss nor in its denominator. None: no such mask."""

    @model_validator(mode="before")
    @classmethod
    def _fill_dependent_defaults(cls, raw: Any) -> Any:
        if not isinstance(raw, dict):
            return raw
        filled: dict[str, Any] = dict(raw)
        if filled.get("normalise", "baseline_std") != "none":
            _default(filled, "std_epsilon", 1e-6)
        if filled.get("force_on_policy_ratio", True) is False:
            _default(filled, "clip_low", 0.2)
            _default(filled, "clip_high", 0.28)
        else:
            _default(filled, "importance", "seq_mask_tis")
        if filled.get("importance") == "seq_mask_tis":
            _default(filled, "importance_min", 0.999)
            _default(filled, "importance_max", 1.002)
        return filled

    @model_validator(mode="after")
    def _refuse_useless(self) -> Self:
        if self.normalise == "none" and self.std_epsilon is not None:
            raise ValueError('std_epsilon would do nothing: with normalise = "none" nothing is divided')
        if self.force_on_policy_ratio:
            for key, value in (("clip_low", self.clip_low), ("clip_high", self.clip_high)):
                if value is not None:
                    raise ValueError(
                        f"{key} would do nothing: force_on_policy_ratio keeps the ratio at 1, which no clip reaches; "
                        "set force_on_policy_ratio = false to clip trainer over engine"
                    )
        elif self.importance is not None:
            raise ValueError(
                "importance would correct twice: without force_on_policy_ratio the ratio is trainer over engine already"
            )
        if self.importance != "seq_mask_tis":
            for key, value in (("importance_min", self.importance_min), ("importance_max", self.importance_max)):
                if value is not None:
                    raise ValueError(f'{key} would do nothing: only importance = "seq_mask_tis" has bounds')
        elif not (self.importance_min or 0.0) <= 1 <= (self.importance_max or 0.0):
            raise ValueError(
                f"importance_min {self.importance_min} and importance_max {self.importance_max} must enclose 1, "
                "the ratio of a rollout that matches the trainer"
            )
        return self


class PackingConfig(_Config):
    """How a batch is cut into micro-batches."""

    micro_batch_tokens: int = Field(default=2816, ge=1)
    """Most token positions, padding included, in a micro-batch; a longer sequence has one to itself. Bounds the memory
    of a step. 2,816 is 16 sequences of 176: what fits the caches of a small CPU best."""
    pad_multiple: int = Field(default=16, ge=1)
    """Sequences are padded to a multiple of this, so that few shapes occur."""


class OptimiserConfig(_Config):
    """AdamW on float32 master weights."""

    learning_rate: float = Field(gt=0)
    """Peak learning rate."""
    warmup_steps: int = Field(default=0, ge=0)
    """Steps of linear warm-up: step s (from 0) takes (s + 1) / warmup_steps of the peak."""
    decay: Literal["constant", "linear"] = "constant"
    """What follows the warm-up."""
    decay_steps: int | None = Field(default=None, ge=1)
    """Steps, after the warm-up, over which `linear` falls to `final_fraction`; required there."""
    final_fraction: float | None = Field(default=None, ge=0, lt=1)
    """Fraction of the peak at the end of `linear`; 0 unless given."""
    beta1: float = Field(default=0.9, ge=0, lt=1)
    """Decay of the first moment."""
    beta2: float = Field(default=0.999, ge=0, lt=1)
    """Decay of the second moment."""
    epsilon: float = Field(default=1e-8, gt=0)
    """Added to the root of the second moment."""
    weight_decay: float = Field(default=0.0, ge=0)
    """Decoupled decay of the weight matrices; vectors (norms, biases) do not decay."""
    max_grad_norm: float | None = Field(default=1.0, gt=0)
    """Gradients are scaled down to this global norm; None: never."""

    @model_validator(mode="before")
    @classmethod
    def _fill_dependent_defaults(cls, raw: Any) -> Any:
        if not isinstance(raw, dict):
            return raw
        filled: dict[str, Any] = dict(raw)
        if filled.get("decay") == "linear":
            _default(filled, "final_fraction", 0.0)
        return filled

    @model_validator(mode="after")
    def _refuse_useless(self) -> Self:
        if self.decay == "linear" and self.decay_steps is None:
            raise ValueError('decay = "linear" needs decay_steps: the number of steps over which the rate falls')
        if self.decay == "constant":
            for key, value in (("decay_steps", self.decay_steps), ("final_fraction", self.final_fraction)):
                if value is not None:
                    raise ValueError(f'{key} would do nothing: with decay = "constant" the rate does not fall')
        return self


def _default(filled: dict[str, Any], key: str, value: object) -> None:
    if filled.get(key) is None:
        filled[key] = value
