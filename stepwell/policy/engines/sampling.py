"""How a token is drawn: a pure function of a row's logits, its temperature and top_p, and one uniform number.

The uniform number comes from (seed, index of the generated token) alone, so what else is in the batch, and in what
order, cannot change a draw but through the logits' last bits. It is turned into a token by the inverse of the
cumulative distribution in the order of token ids, after top_p has set the excluded tokens to zero: in that order a
logit that is off by 1e-6 moves a boundary by about 1e-6, where an order by probability could swap two neighbours.

Shape suffixes: B rows, V vocabulary.
"""

import hashlib
from dataclasses import dataclass

import torch

_MANTISSA_BITS = 53  # of a float64: the finest uniform grid below 1


@dataclass(frozen=True)
class Drawn:
    """One token a row."""

    token_ids: list[int]
    logprobs: list[float]
    """In nats, of the temperature-scaled distribution before top_p, computed in float32."""


def uniform(seed: int, index: int) -> float:
    """A number in [0, 1) for the `index`-th generated token (from 0) of a request with the 64-bit `seed`.

    The first 53 bits of SHA-256 over seed and index, each 8 bytes, big-endian.
    """
    digest = hashlib.sha256(seed.to_bytes(8, "big") + index.to_bytes(8, "big")).digest()
    return (int.from_bytes(digest[:8], "big") >> (64 - _MANTISSA_BITS)) / (1 << _MANTISSA_BITS)


def draw(logits_BV: torch.Tensor, temperature_B: list[float], top_p_B: list[float], uniform_B: list[float]) -> Drawn:
    """Draws one token a row.

    Args:
        logits_BV: any float dtype; taken to float32 first.
        temperature_B: above 0.
        top_p_B: in (0, 1]; a row keeps its most probable tokens up to the first at which their sum reaches top_p.
        uniform_B: in [0, 1).

    Raises:
        FloatingPointError: a row's logits are not finite, so it has no distribution.
    """
    device = logits_BV.device
    temperature = torch.tensor(temperature_B, dtype=torch.float32, device=device)
    logprobs_BV = torch.log_softmax(logits_BV.float() / temperature[:, None], dim=-1)
    mass_BV = logprobs_BV.exp().double()
    cut = [row for row, top_p in enumerate(top_p_B) if top_p < 1.0]
    if cut:
        cut_rows = torch.tensor(cut, device=device)
        top_p = torch.tensor([top_p_B[row] for row in cut], dtype=torch.float64, device=device)
        mass_BV[cut_rows] = _keep_nucleus(mass_BV[cut_rows], top_p)
    cumulative_BV = mass_BV.cumsum(dim=-1)
    total_B = cumulative_BV[:, -1].contiguous()
    target_B = torch.tensor(uniform_B, dtype=torch.float64, device=device) * total_B
    # The first token whose cumulative mass passes the target. Rounding may put the target on the total itself; the
    # last token with any mass is then the first whose cumulative mass equals the total.
    drawn_B = torch.searchsorted(cumulative_BV, target_B[:, None], right=True)[:, 0]
    last_B = torch.searchsorted(cumulative_BV, total_B[:, None], right=False)[:, 0]
    token_B = torch.minimum(drawn_B, last_B).clamp_(max=logits_BV.shape[-1] - 1)
    logprob_B = logprobs_BV.gather(1, token_B[:, None])[:, 0]
    if not bool(torch.isfinite(logprob_B).all() & torch.isfinite(total_B).all()):
        raise FloatingPointError("logits are not finite: the weights of this version cannot be sampled from")
    return Drawn(token_ids=token_B.tolist(), logprobs=logprob_B.tolist())


def _keep_nucleus(mass_BV: torch.Tensor, top_p_B: torch.Tensor) -> torch.Tensor:
    """Zeroes what top_p excludes: a token stays if the more probable ones before it sum to less than top_p."""
    sorted_BV, order_BV = mass_BV.sort(dim=-1, descending=True, stable=True)
    before_BV = sorted_BV.cumsum(dim=-1) - sorted_BV
    kept_BV = torch.where(before_BV < top_p_B[:, None], sorted_BV, 0.0)
    return torch.zeros_like(mass_BV).scatter_(1, order_BV, kept_BV)
