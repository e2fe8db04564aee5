"""What each loss gives, whatever its formula."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class TokenLosses:
    """Of the tokens that train."""

    losses_n: Tensor
    """With gradient; summed with the weights of `stepwell.rl.losses.aggregation`."""
    bounded_n: Tensor
    """Bool: a bound decided over the token, that of its ratio, of the ratio's weight, or of its correction."""
