"""An estimate of what one GPU of an engine holds, by part.

A cached token takes 2 (key and value) x layers x key-value heads x width of a head numbers (Kwon et al. 2023,
arXiv:2309.06180, section 3: 800 KB a token for OPT-13B); only layers of full attention cache tokens. Linear attention
has one state and the last positions of its convolution a sequence, whatever its length.
"""

from dataclasses import dataclass

from stepwell.mlperf.parameters import parameters
from stepwell.recipe.model_shape import ModelShape

NUMBER_BYTES = 2
"""Of a weight and of a cached number: bfloat16."""
STATE_BYTES = 4
"""Of a number of linear attention's state: float32."""


@dataclass(frozen=True)
class EngineMemory:
    """Bytes on one GPU of an engine."""

    weights: float
    """In bfloat16; experts are cut like the rest, or lie whole, in the same number."""
    kv_cache: float
    """Keys and values of `sequences` sequences, each as long as it may be."""
    states: float
    """States of linear attention of as many sequences."""
    sequences: int
    """Sequences at once."""

    @property
    def total(self) -> float:
        """All of it."""
        return self.weights + self.kv_cache + self.states


def engine_memory(shape: ModelShape, *, gpus: int, sequences: int, context: int) -> EngineMemory:
    """The estimate for an engine.

    Args:
        shape: The model.
        gpus: GPUs of the engine, over which heads and matrices are cut.
        sequences: Sequences at once.
        context: Tokens of a sequence.
    """
    return EngineMemory(
        weights=NUMBER_BYTES * parameters(shape).total / gpus,
        kv_cache=sequences * context * token_bytes(shape, gpus=gpus),
        states=sequences * sequence_bytes(shape, gpus=gpus),
        sequences=sequences,
    )


def token_bytes(shape: ModelShape, *, gpus: int) -> int:
    """Of one cached token on one GPU. Key-value heads are cut over GPUs, and repeated where there are fewer of them."""
    heads = max(1, shape.kv_heads // gpus)
    return 2 * shape.full_attention_layers * heads * shape.head_dim * NUMBER_BYTES


def sequence_bytes(shape: ModelShape, *, gpus: int) -> float:
    """Of one sequence's linear attention on one GPU."""
    layers = shape.layers - shape.full_attention_layers
    key_dim, value_dim = shape.linear_key_dim or 0, shape.linear_value_dim or 0
    keys, values = (shape.linear_key_heads or 0) * key_dim, (shape.linear_value_heads or 0) * value_dim
    state = STATE_BYTES * values * key_dim
    convolution = NUMBER_BYTES * (2 * keys + values) * max(0, (shape.linear_kernel or 0) - 1)
    return layers * (state + convolution) / gpus
