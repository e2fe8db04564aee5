"""Seeds: a function of what is sampled, never of the attempt or the engine that samples it."""

from typing import Literal

from stepwell.events.canonical import digest_of_json

Purpose = Literal["generate", "grade", "forge", "warmup", "init", "bootstrap", "control"]


def derive_seed(
    run_seed: int, purpose: Purpose, *, scope: str = "", prompt: int = 0, sample: int = 0, turn: int = 0
) -> int:
    """Unsigned 64-bit seed: the first eight bytes, big-endian, of the tagged SHA-256 of the canonical JSON list
    `[run_seed, purpose, scope, prompt, sample, turn]`.

    Args:
        run_seed: the recipe's seed.
        purpose: keeps streams of random numbers apart.
        scope: training step or validation scope, as in stream names.
        prompt: index in its scope.
        sample: rollout of the group.
        turn: turn of the rollout, from 0.
    """
    return int(digest_of_json([run_seed, purpose, scope, prompt, sample, turn])[:16], 16)
