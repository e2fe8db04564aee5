"""The losses and corrections in plain Python floats, written from the papers that docs/losses.md names and not from our
code: one rollout after the other, probabilities instead of their logarithms where that is possible.

A stop of the gradient is a second variable: what is differentiated is `moved`, while what stands under a stop keeps the
batch's own log-probabilities. So a finite difference of `batch_loss` is the gradient that is meant.
"""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stepwell.rl.config import GrpoConfig

Token = tuple[float, float]
"""Log-probability by the trainer and by the engine."""


@dataclass(frozen=True)
class Rollout:
    """Generated tokens of a rollout, by row."""

    advantage: float
    rows: tuple[tuple[Token, ...], ...]

    @property
    def length(self) -> int:
        """Of all rows."""
        return sum(len(row) for row in self.rows)


def batch_loss(rollouts: Sequence[Rollout], config: GrpoConfig, moved: Sequence[float] | None = None) -> float:
    """The loss of a batch; `moved` are all tokens' log-probabilities by the trainer, in order, with a gradient."""
    free = iter([p for each in rollouts for row in each.rows for p, _ in row] if moved is None else moved)
    sums: list[tuple[float, int]] = []
    for each in rollouts:
        total, counted = 0.0, 0
        for row in each.rows:
            losses = _row_losses(each.advantage, row, [next(free) for _ in row], config)
            total, counted = total + sum(losses), counted + len(losses)
        if counted:
            assert counted == each.length, "these formulas know no rollout that is masked in part"
            sums.append((total, counted))
    if not sums:
        return 0.0
    if config.loss_agg_mode == "token_mean":  # DAPO, equation 12
        return sum(total for total, _ in sums) / sum(counted for _, counted in sums)
    if config.loss_agg_mode == "seq_mean_token_mean":  # GRPO, equation 3
        return sum(total / counted for total, counted in sums) / len(sums)
    assert config.loss_scale_factor is not None
    return sum(total / config.loss_scale_factor for total, _ in sums) / len(sums)  # Dr. GRPO, listing 1


def _row_losses(advantage: float, row: Sequence[Token], free: Sequence[float], config: GrpoConfig) -> list[float]:
    """Of each token; none of a row that is masked by mismatch."""
    errors = [math.exp(abs(p - q)) for p, q in row]
    if config.mismatch_max is not None and sum(errors) / len(errors) > config.mismatch_max:
        return []
    if config.force_on_policy_ratio:
        weights = list(_weights(row, config))
        return [-advantage * w * math.exp(moved - p) for w, moved, (p, _) in zip(weights, free, row, strict=True)]
    ratios = [math.exp(moved) / math.exp(q) for moved, (_, q) in zip(free, row, strict=True)]
    assert config.clip_high is not None
    if config.loss == "cispo":
        low = 0.0 if config.clip_low is None else 1 - config.clip_low
        held = [min(max(math.exp(p) / math.exp(q), low), 1 + config.clip_high) for p, q in row]
        return [-advantage * weight * moved for weight, moved in zip(held, free, strict=True)]
    assert config.clip_low is not None
    if config.loss == "gspo":
        ratios = [math.prod(ratios) ** (1 / len(ratios))] * len(ratios)
    clipped = [min(max(ratio, 1 - config.clip_low), 1 + config.clip_high) for ratio in ratios]
    return [-min(ratio * advantage, clip * advantage) for ratio, clip in zip(ratios, clipped, strict=True)]


def _weights(row: Sequence[Token], config: GrpoConfig) -> Iterator[float]:
    ratios = [math.exp(p) / math.exp(q) for p, q in row]
    low, high = config.importance_min or 0.0, config.importance_max or math.inf
    mean = math.prod(ratios) ** (1 / len(ratios))
    for ratio in ratios:
        match config.importance:
            case "seq_mask_tis":
                yield ratio if low <= mean <= high else 0.0
            case "tis":
                yield min(max(ratio, low), high)
            case "icepop":
                yield ratio if low <= ratio <= high else 0.0
            case _:
                yield 1.0


def finite_differences(rollouts: Sequence[Rollout], config: GrpoConfig, step: float = 1e-6) -> list[float]:
    """Gradient of `batch_loss` by each token's log-probability, central."""
    start = [p for each in rollouts for row in each.rows for p, _ in row]
    found: list[float] = []
    for place in range(len(start)):
        ends = [
            batch_loss(rollouts, config, [*start[:place], start[place] + s, *start[place + 1 :]]) for s in (step, -step)
        ]
        found.append((ends[0] - ends[1]) / (2 * step))
    return found


def random_rollouts(seed: int, spread: float = 0.5, rows: int = 1) -> list[Rollout]:
    """Six rollouts of up to `rows` rows; `spread` is how far trainer and engine are from each other, in nats."""
    dice = random.Random(seed)
    return [
        Rollout(
            advantage,
            tuple(
                tuple((p, p - dice.uniform(-spread, spread)) for p in _logprobs(dice))
                for _ in range(dice.randint(1, rows))
            ),
        )
        for advantage in (-1.3, -0.25, 0.0, 0.4, 0.9, 2.0)
    ]


def _logprobs(dice: random.Random) -> list[float]:
    return [dice.uniform(-4, -0.01) for _ in range(dice.randint(1, 6))]


UNMASKED = {"mismatch_max": None}
ON_POLICY = [
    GrpoConfig(importance="none", **UNMASKED),
    GrpoConfig(importance_min=0.8, importance_max=1.3),
    GrpoConfig(importance="tis", importance_max=1.2),
    GrpoConfig(importance="tis", importance_min=0.9, importance_max=1.2, **UNMASKED),
    GrpoConfig(importance="icepop", importance_min=0.8, importance_max=1.3),
]
CLIPPED = [
    GrpoConfig(force_on_policy_ratio=False),
    GrpoConfig(force_on_policy_ratio=False, clip_low=0.2, clip_high=0.2, **UNMASKED),
    GrpoConfig(force_on_policy_ratio=False, loss="gspo"),
    GrpoConfig(force_on_policy_ratio=False, loss="gspo", clip_low=0.1, clip_high=0.2, **UNMASKED),
    GrpoConfig(force_on_policy_ratio=False, loss="cispo", **UNMASKED),
    GrpoConfig(force_on_policy_ratio=False, loss="cispo", clip_low=0.1, clip_high=0.2),
]
MEANS = [
    {"loss_agg_mode": "token_mean"},
    {"loss_agg_mode": "seq_mean_token_mean"},
    {"loss_agg_mode": "seq_mean_token_sum_norm", "loss_scale_factor": 8},
]
EVERY = [GrpoConfig.model_validate(config.model_dump() | mean) for config in (*ON_POLICY, *CLIPPED) for mean in MEANS]
"""Each loss and each correction, under each mean."""


def name_of(config: GrpoConfig) -> str:
    """For the ids of tests."""
    return f"{config.importance or config.loss} {config.loss_agg_mode}"
