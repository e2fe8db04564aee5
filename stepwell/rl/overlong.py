"""DAPO's soft overlong punishment: what is taken off the reward of a rollout that generated nearly all that it may,
before advantages are taken. The recorded reward, and what is reported of it, stay as they are.

For a rollout of L generated tokens, a buffer of B before the limit M, and the penalty P:

    0                            L <= M - B
    P · ((M - B) - L) / B        M - B < L <= M
    -P                           L > M

Source: arXiv 2503.14476, equation 13, where P is 1; verl's `overlong_buffer`, NeMo-RL's `reward_shaping`.
"""

from fractions import Fraction

from stepwell.rl.config import GrpoConfig


def shaped_reward(reward: float, generated_tokens: int, config: GrpoConfig) -> float:
    """The reward that a rollout votes with; the recorded one where the recipe has no such punishment."""
    if config.overlong_buffer_length is None:
        return reward
    assert config.max_response_length is not None  # GrpoConfig asks for it, and fills the next
    assert config.overlong_buffer_penalty is not None
    over = generated_tokens - (config.max_response_length - config.overlong_buffer_length)
    share = Fraction(min(max(over, 0), config.overlong_buffer_length), config.overlong_buffer_length)
    return float(Fraction(reward) - share * Fraction(config.overlong_buffer_penalty))
