"""How many parameters a model of a published shape has, by what decides where they lie.

The tensors are those of `modeling_qwen3_5_moe.py` and `modeling_qwen3.py` in Hugging Face transformers, without a
vision tower and without heads for several tokens at once; biases there are none.
"""

from dataclasses import dataclass

from stepwell.recipe.model_shape import ModelShape


@dataclass(frozen=True)
class Parameters:
    """Counts."""

    attention: int
    """Full attention, all layers: projections and the norms of queries and keys."""
    linear_attention: int
    """Linear attention, all layers."""
    feed_forward: int
    """Dense or shared feed-forward layers, all layers."""
    router: int
    """Routers and the gates of shared experts, all layers."""
    experts: int
    """Routed experts, all layers."""
    norms: int
    """Norms before attention and before the feed-forward layer, and the last one."""
    embedding: int
    """The embedding."""
    head: int
    """The head; 0 if it is the embedding."""

    @property
    def total(self) -> int:
        """All of them."""
        return self.dense + self.experts

    @property
    def dense(self) -> int:
        """All but routed experts."""
        return self.layers_dense + self.embedding + self.head

    @property
    def layers_dense(self) -> int:
        """Those of the layers, without routed experts."""
        return self.attention + self.linear_attention + self.feed_forward + self.router + self.norms


def parameters(shape: ModelShape) -> Parameters:
    """The counts of a shape."""
    linear_layers = shape.layers - shape.full_attention_layers
    vocabulary = shape.vocabulary * shape.hidden
    return Parameters(
        attention=shape.full_attention_layers * _attention(shape),
        linear_attention=linear_layers * _linear_attention(shape) if linear_layers else 0,
        feed_forward=shape.layers * 3 * shape.hidden * (shape.feed_forward or shape.shared_feed_forward or 0),
        router=shape.layers * _router(shape),
        experts=shape.layers * (shape.experts or 0) * 3 * shape.hidden * (shape.expert_feed_forward or 0),
        norms=(2 * shape.layers + 1) * shape.hidden,
        embedding=vocabulary,
        head=0 if shape.tied else vocabulary,
    )


def active_parameters(shape: ModelShape) -> int:
    """Those that one token meets: of the routed experts only its own."""
    counts = parameters(shape)
    if shape.experts is None:
        return counts.total
    return counts.dense + counts.experts * (shape.experts_per_token or 0) // shape.experts


def _attention(shape: ModelShape) -> int:
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    gate = queries if shape.output_gate else 0
    return shape.hidden * (queries + gate + 2 * keys + queries) + 2 * shape.head_dim


def _linear_attention(shape: ModelShape) -> int:
    keys = (shape.linear_key_heads or 0) * (shape.linear_key_dim or 0)
    heads = shape.linear_value_heads or 0
    values = heads * (shape.linear_value_dim or 0)
    convolved = 2 * keys + values
    projections = shape.hidden * (convolved + values + 2 * heads + values)
    return projections + convolved * (shape.linear_kernel or 0) + 2 * heads + (shape.linear_value_dim or 0)


def _router(shape: ModelShape) -> int:
    if shape.experts is None:
        return 0
    return shape.hidden * (shape.experts + (1 if shape.shared_feed_forward else 0))
