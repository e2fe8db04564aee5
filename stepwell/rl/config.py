"""What a recipe may say about the algorithm: advantages, loss, packing, optimiser.

A key that would do nothing under the other settings is refused with the reason, so that a recipe never lies. Optional
keys whose default depends on another key are None until that key asks for them; a resolved config validates again to
itself.
"""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class _Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


CLIPS: Mapping[str, tuple[float | None, float]] = {"grpo": (0.2, 0.28), "gspo": (3e-4, 4e-4), "cispo": (None, 4.0)}
"""Of each loss, `clip_low` and `clip_high` unless given. `grpo`: arXiv 2503.14476; `gspo`: 2507.18071, section 5.1;
`cispo`: no lower bound as in 2506.13585, a ratio of at most 5 as in 2510.13786."""
IMPORTANCE_BOUNDS: Mapping[str, tuple[float | None, float]] = {
    "seq_mask_tis": (0.999, 1.002),
    "icepop": (0.5, 5.0),
    "tis": (None, 2.0),
}
"""Of each correction, `importance_min` and `importance_max` unless given. `seq_mask_tis`: MLPerf Training v6.1;
`icepop`: arXiv 2510.18855; `tis`: Yao et al. 2025."""


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
    overlong_buffer_length: int | None = Field(default=None, ge=1)
    """DAPO's soft overlong punishment: generated tokens before `max_response_length` over which a rollout's reward
    falls, before advantages are taken. None: no punishment."""
    overlong_buffer_penalty: float | None = Field(default=None, gt=0)
    """What the reward falls by at the end of the buffer; 1 unless given. Refused without a buffer."""
    max_response_length: int | None = Field(default=None, ge=1)
    """Generated tokens of a rollout at which the punishment is whole; needed with a buffer, refused without."""
    loss: Literal["grpo", "gspo", "cispo"] = "grpo"
    """What is made of trainer over engine. `grpo`: a ratio a token, clipped; `gspo`: one a sequence, clipped; `cispo`:
    a weight a token, clipped, without a gradient. The last two are refused with `force_on_policy_ratio`."""
    loss_agg_mode: Literal["token_mean", "seq_mean_token_mean", "seq_mean_token_sum_norm"] | None = None
    """From tokens to the batch: the mean over all tokens (DAPO), the mean over rollouts of the mean over tokens (GRPO's
    first form), or the mean over rollouts of the sum over tokens divided by `loss_scale_factor` (Dr. GRPO).
    `seq_mean_token_mean` unless given with `gspo`, else `token_mean`."""
    loss_scale_factor: int | None = Field(default=None, ge=1)
    """Tokens: the constant of `seq_mean_token_sum_norm`, for example the most that a rollout may generate; needed
    there, refused elsewhere."""
    force_on_policy_ratio: bool = True
    """The ratio is 1 in value, its gradient that of the log-probability; staleness is left to `importance`. If false,
    the ratio is trainer over engine, clipped."""
    clip_low: float | None = Field(default=None, gt=0, lt=1)
    """Ratio is clipped below 1 - this; unless given, 0.2 (`grpo`), 3e-4 (`gspo`), not at all (`cispo`). Refused with
    `force_on_policy_ratio`."""
    clip_high: float | None = Field(default=None, gt=0)
    """Ratio is clipped above 1 + this; unless given, 0.28 (`grpo`), 4e-4 (`gspo`), 4 (`cispo`). Refused with
    `force_on_policy_ratio`."""
    importance: Literal["seq_mask_tis", "tis", "icepop", "none"] | None = None
    """Correction of the difference between engine and trainer. `seq_mask_tis`, the default: each token weighs trainer
    over engine, and a sequence whose geometric mean of that is out of bounds weighs 0. `tis`: each token weighs trainer
    over engine, clipped to the bounds. `icepop`: the same, but 0 out of bounds. Refused without
    `force_on_policy_ratio`, whose ratio already holds the correction."""
    importance_min: float | None = Field(default=None, gt=0)
    """Lower bound; unless given, 0.999 (`seq_mask_tis`), 0.5 (`icepop`), none (`tis`)."""
    importance_max: float | None = Field(default=None, gt=0)
    """Upper bound; unless given, 1.002 (`seq_mask_tis`), 5 (`icepop`), 2 (`tis`)."""
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
        if filled.get("overlong_buffer_length") is not None:
            _default(filled, "overlong_buffer_penalty", 1.0)
        loss = filled.get("loss", "grpo")
        _default(filled, "loss_agg_mode", "seq_mean_token_mean" if loss == "gspo" else "token_mean")
        if filled.get("force_on_policy_ratio", True) is False:
            _default_pair(filled, ("clip_low", "clip_high"), CLIPS, loss)
        else:
            _default(filled, "importance", "seq_mask_tis")
        _default_pair(filled, ("importance_min", "importance_max"), IMPORTANCE_BOUNDS, filled.get("importance"))
        return filled

    @model_validator(mode="after")
    def _refuse_useless_of_rewards(self) -> Self:
        if self.normalise == "none" and self.std_epsilon is not None:
            raise ValueError('std_epsilon would do nothing: with normalise = "none" nothing is divided')
        if self.overlong_buffer_length is None:
            for key in ("overlong_buffer_penalty", "max_response_length"):
                if getattr(self, key) is not None:
                    raise ValueError(f"{key} would do nothing: without overlong_buffer_length no length is punished")
        elif self.max_response_length is None:
            raise ValueError(
                "overlong_buffer_length needs max_response_length: the generated tokens at which all of it is punished"
            )
        elif self.overlong_buffer_length > self.max_response_length:
            raise ValueError(
                f"overlong_buffer_length {self.overlong_buffer_length} is above max_response_length "
                f"{self.max_response_length}: a rollout of no tokens would be punished"
            )
        return self

    @model_validator(mode="after")
    def _refuse_useless_of_loss(self) -> Self:
        if self.loss_agg_mode == "seq_mean_token_sum_norm" and self.loss_scale_factor is None:
            raise ValueError(
                'loss_agg_mode = "seq_mean_token_sum_norm" needs loss_scale_factor: the constant, in tokens'
            )
        if self.loss_agg_mode != "seq_mean_token_sum_norm" and self.loss_scale_factor is not None:
            raise ValueError(
                'loss_scale_factor would do nothing: only loss_agg_mode = "seq_mean_token_sum_norm" divides by it'
            )
        if self.force_on_policy_ratio:
            if self.loss != "grpo":
                raise ValueError(
                    f'loss = "{self.loss}" would do nothing: force_on_policy_ratio keeps the ratio at 1, whose loss is '
                    "the same for all; set force_on_policy_ratio = false"
                )
            for key in ("clip_low", "clip_high"):
                if getattr(self, key) is not None:
                    raise ValueError(
                        f"{key} would do nothing: force_on_policy_ratio keeps the ratio at 1, which no clip reaches; "
                        "set force_on_policy_ratio = false to clip trainer over engine"
                    )
        elif self.importance is not None:
            raise ValueError(
                "importance would correct twice: without force_on_policy_ratio the ratio is trainer over engine already"
            )
        return self

    @model_validator(mode="after")
    def _refuse_useless_bounds(self) -> Self:
        if self.importance in (None, "none"):
            for key in ("importance_min", "importance_max"):
                if getattr(self, key) is not None:
                    raise ValueError(
                        f'{key} would do nothing: only importance = "seq_mask_tis", "tis" or "icepop" has bounds'
                    )
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


def _default_pair(
    filled: dict[str, Any], keys: tuple[str, str], known: Mapping[str, tuple[float | None, float]], name: object
) -> None:
    """Nothing for a name that is not known: the field itself refuses it."""
    if isinstance(name, str) and name in known:
        for key, value in zip(keys, known[name], strict=True):
            _default(filled, key, value)
