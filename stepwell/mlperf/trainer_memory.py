"""An estimate of what one GPU of the policy pool holds, by part.

Mixed precision as Megatron-core trains it with its distributed optimiser (its documentation, "Distributed Optimizer":
bfloat16 parameters and float32 gradients take 6 + 12/d bytes a parameter, d the replicas that share the optimiser):
2 bytes of weights, 4 of gradient, and 12 of master weight and two moments. Routed experts are replicated less often
than the rest, and so share their optimiser among fewer.

Activations are those of one packed micro-batch. Each layer keeps its input only and is computed again in the backward
pass ("full recomputation" with sequence parallelism: Korthikanti et al. 2022, arXiv:2205.05198, section 5), so that one
layer's inside is held at a time. Not counted: the allocator's waste, buffers of communication, the CUDA context.
"""

from dataclasses import dataclass

from stepwell.mlperf.parameters import Parameters, parameters
from stepwell.recipe.cluster import ClusterSection
from stepwell.recipe.model_shape import ModelShape

WEIGHT_BYTES, GRADIENT_BYTES, OPTIMISER_BYTES = 2, 4, 12
"""Of a parameter."""
ACTIVATION_BYTES = 2
"""Of a number in an activation: bfloat16."""
CHUNK = 64
"""Positions for which linear attention keeps one state (the chunked Gated DeltaNet kernels of flash-linear-attention),
in float32."""


@dataclass(frozen=True)
class TrainerMemory:
    """Bytes on the fullest GPU of the policy pool."""

    weights: float
    """In bfloat16."""
    gradients: float
    """In float32."""
    optimiser: float
    """Master weights and two moments in float32, shared by replicas."""
    kept: float
    """Inputs of layers, kept for the backward pass."""
    layer: float
    """The inside of the layer that is computed again."""
    logits: float
    """Logits and their gradient, in bfloat16."""

    @property
    def total(self) -> float:
        """All of it."""
        return self.weights + self.gradients + self.optimiser + self.kept + self.layer + self.logits


def trainer_memory(shape: ModelShape, cluster: ClusterSection, tokens: int) -> TrainerMemory:
    """The estimate for micro-batches of so many packed tokens: of the first pipeline stage, which keeps the inputs of
    as many micro-batches as there are stages, or of the last, which holds the logits; whichever is fuller."""
    first, last = _stage(shape, cluster, tokens, first=True), _stage(shape, cluster, tokens, first=False)
    return max(first, last, key=lambda stage: stage.total)


def _stage(shape: ModelShape, cluster: ClusterSection, tokens: int, *, first: bool) -> TrainerMemory:
    pool = cluster.policy
    stages = pool.pipeline_parallel
    only = stages == 1
    dense, experts = _of_stage(parameters(shape), stages, first=first or only, last=not first or only)
    dense_here, experts_here = dense / pool.tensor_parallel, experts / pool.expert_parallel
    dense_shared_by = cluster.data_parallel * pool.context_parallel
    experts_shared_by = cluster.stage_gpus / pool.expert_parallel
    here = dense_here + experts_here
    share = tokens / (pool.tensor_parallel * pool.context_parallel)
    in_flight = stages if first else 1
    has_head = not first or only
    return TrainerMemory(
        weights=WEIGHT_BYTES * here,
        gradients=GRADIENT_BYTES * here,
        optimiser=OPTIMISER_BYTES * (dense_here / dense_shared_by + experts_here / experts_shared_by),
        kept=in_flight * (shape.layers / stages) * layer_input_bytes(shape, share),
        layer=layer_inside_bytes(shape, share),
        logits=2 * ACTIVATION_BYTES * share * shape.vocabulary if has_head else 0.0,
    )


def _of_stage(counts: Parameters, stages: int, *, first: bool, last: bool) -> tuple[float, float]:
    """Parameters of a stage: those that tensor parallelism cuts (norms and routers, in truth whole everywhere, are a
    thousandth), and routed experts."""
    ends = (counts.embedding if first else 0) + ((counts.head or counts.embedding) if last and not first else 0)
    if first and last:
        ends = counts.embedding + counts.head
    return counts.layers_dense / stages + ends, counts.experts / stages


def layer_input_bytes(shape: ModelShape, tokens: float) -> float:
    """What a layer that is computed again keeps of so many tokens: its input, 2 bytes a number."""
    return ACTIVATION_BYTES * tokens * shape.hidden


def layer_inside_bytes(shape: ModelShape, tokens: float) -> float:
    """What the backward pass of one layer holds for so many tokens: attention of the larger kind, and the feed-forward
    layer, with its two normalised inputs."""
    attention = _attention_numbers(shape) * ACTIVATION_BYTES
    if shape.full_attention_every > 1:
        attention = max(attention, _linear_numbers(shape) * ACTIVATION_BYTES + _state_bytes(shape) / CHUNK)
    return tokens * (attention + _feed_forward_numbers(shape) * ACTIVATION_BYTES)


def _attention_numbers(shape: ModelShape) -> int:
    """Of a token: input, queries, keys, values, output; and with a gate the gate and the gated output."""
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    return shape.hidden + 2 * queries + 2 * keys + (2 * queries if shape.output_gate else 0)


def _linear_numbers(shape: ModelShape) -> int:
    """Of a token: input; queries, keys and values before and after the convolution; gate, output and gated output."""
    keys = (shape.linear_key_heads or 0) * (shape.linear_key_dim or 0)
    values = (shape.linear_value_heads or 0) * (shape.linear_value_dim or 0)
    return shape.hidden + 2 * (2 * keys + values) + 3 * values


def _state_bytes(shape: ModelShape) -> int:
    """One state of linear attention."""
    return 4 * (shape.linear_value_heads or 0) * (shape.linear_key_dim or 0) * (shape.linear_value_dim or 0)


def _feed_forward_numbers(shape: ModelShape) -> int:
    """Of a token: input; of each expert that sees it (routed ones get a copy and return one) gate, up and product."""
    routed = (shape.experts_per_token or 0) * (2 * shape.hidden + 3 * (shape.expert_feed_forward or 0))
    return shape.hidden + routed + 3 * (shape.feed_forward or shape.shared_feed_forward or 0)
