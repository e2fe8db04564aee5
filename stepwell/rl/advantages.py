"""Advantages of one prompt group, in float64 and plain Python: an auditor recomputes them to the bit.

Formula as in MLPerf Training v6.1 (NeMo-RL, `calculate_baseline_and_std_per_prompt`): for rollout i with votes V,
b_i = mean of r_j over V (without i under leave-one-out), s_i = the sample standard deviation of the same rewards, and
a_i = (r_i - b_i) / (s_i + epsilon) where s_i > 0, else r_i - b_i. There a masked rollout still votes; here it does not
(NeMo-RL issue 4061).
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from stepwell.rl.config import GrpoConfig


def group_advantages(votes: Sequence[float | None], config: GrpoConfig) -> list[float | None]:
    """Advantages of one prompt group.

    Args:
        votes: the reward of each rollout, None for one that failed or is masked: it has no vote and no advantage.
        config: baseline and normalisation.

    Returns:
        One a rollout, in order; None where the vote is None, 0.0 for a rollout that votes alone.

    Raises:
        ValueError: a reward that is not finite.
    """
    rewards = [reward for reward in votes if reward is not None]
    for reward in rewards:
        if not math.isfinite(reward):
            raise ValueError(f"reward {reward} is not finite; a rollout without a score has None")
    if len(rewards) < 2:
        return [None if reward is None else 0.0 for reward in votes]
    by_reward = {reward: _advantage(reward, rewards, config) for reward in set(rewards)}
    return [None if reward is None else by_reward[reward] for reward in votes]


def _advantage(reward: float, rewards: Sequence[float], config: GrpoConfig) -> float:
    """Advantage of one rollout among the voting rewards of its group, its own among them."""
    group = [Fraction(other) for other in rewards]
    compared = list(group)
    if config.baseline == "leave_one_out":
        compared.remove(Fraction(reward))
    raw = Fraction(reward) - sum(compared) / len(compared)
    if config.normalise == "none":
        return float(raw)
    deviation = sample_deviation(compared if config.normalise == "baseline_std" else group)
    if deviation == 0.0:
        return float(raw)
    assert config.std_epsilon is not None  # GrpoConfig fills it unless normalise is "none"
    return float(raw) / (deviation + config.std_epsilon)


def sample_deviation(values: Sequence[Fraction]) -> float:
    """Standard deviation with n - 1 in the denominator; 0.0 for fewer than two values.

    Sums are exact, so equal rewards have a deviation of exactly 0, in any order.
    """
    if len(values) < 2:
        return 0.0
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return math.sqrt(float(variance))
