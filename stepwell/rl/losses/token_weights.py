"""What each correction of the difference between engine and trainer gives."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class TokenWeights:
    """Of the tokens that train; none has a gradient."""

    weights_n: Tensor
    """What the token's loss is multiplied with."""
    bounded_n: Tensor
    """Bool: a bound decided over the weight."""
