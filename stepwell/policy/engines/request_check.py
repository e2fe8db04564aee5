"""What a request must be to fit a model: the same for every engine."""

import math

from stepwell.policy.protocol import GenerateRequest

_SEEDS = 1 << 64


def check_request(request: GenerateRequest, vocab_size: int, max_context: int) -> None:
    """Raises ValueError, with what was found and what is allowed, unless `request` fits the model."""
    check_token_ids(request.token_ids, vocab_size)
    if request.max_tokens < 1:
        raise ValueError(f"max_tokens is {request.max_tokens}, at least 1 is wanted")
    longest = len(request.token_ids) + request.max_tokens
    if longest > max_context:
        raise ValueError(
            f"the request is too long: {len(request.token_ids)} tokens of context and {request.max_tokens} to generate "
            f"are {longest}, the engine's max_context is {max_context}"
        )
    if not (request.temperature > 0 and math.isfinite(request.temperature)):
        raise ValueError(f"temperature is {request.temperature}, a finite number above 0 is wanted")
    if not 0 < request.top_p <= 1:
        raise ValueError(f"top_p is {request.top_p}, a number in (0, 1] is wanted")
    if not 0 <= request.seed < _SEEDS:
        raise ValueError(f"seed is {request.seed}, an unsigned number of 64 bits is wanted")


def check_token_ids(token_ids: tuple[int, ...], vocab_size: int) -> None:
    """Raises ValueError unless there is at least one id and all lie in the vocabulary."""
    if not token_ids:
        raise ValueError("there are no token ids, at least one is wanted")
    if min(token_ids) < 0 or max(token_ids) >= vocab_size:
        wrong = next(token for token in token_ids if not 0 <= token < vocab_size)
        raise ValueError(f"token id {wrong} is outside the model's vocabulary of {vocab_size}")
