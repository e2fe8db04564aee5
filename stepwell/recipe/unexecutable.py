"""What a recipe for a cluster asks for and Stepwell cannot do: said in a plan, and refused when the run would begin."""

from collections.abc import Iterator

from stepwell.policy.trainers.megatron.layout import Counts, Layout
from stepwell.recipe.cluster import ClusterSection
from stepwell.recipe.model_shape import ModelShape
from stepwell.recipe.recipe import FolderPolicy, Recipe


def unexecutable(recipe: Recipe) -> list[str]:
    """Each in one sentence, with the key that asks for it; empty if there is nothing."""
    cluster, policy = recipe.cluster, recipe.policy
    if cluster is None or not isinstance(policy, FolderPolicy) or policy.shape is None:
        return []  # a cluster is refused without a shape
    backend = (
        _on_torch(cluster)
        if recipe.trainer.layout is None
        else _on_megatron(cluster, recipe.trainer.layout, policy.shape)
    )
    return [*_on_any_trainer(cluster), *backend, *_on_engines(cluster, recipe.engine.tensor_parallel or 1)]


def _on_any_trainer(cluster: ClusterSection) -> Iterator[str]:
    pool = cluster.policy
    for name, parts, does in (
        ("pipeline_parallel", pool.pipeline_parallel, "cuts a model into stages"),
        ("context_parallel", pool.context_parallel, "shares a sequence between GPUs"),
    ):
        if parts > 1:
            yield f"cluster.policy.{name} = {parts}: no trainer backend {does}"
    if pool.nodes > 1:
        yield f"cluster.policy.nodes = {pool.nodes}: a trainer's ranks are processes of one machine"


def _on_torch(cluster: ClusterSection) -> Iterator[str]:
    yield (
        f"cluster.policy: the trainer computes on processors, not on its {cluster.policy_gpus} GPUs, with "
        'trainer.backend = "torch"'
    )
    for name, parts in (
        ("tensor_parallel", cluster.policy.tensor_parallel),
        ("expert_parallel", cluster.policy.expert_parallel),
    ):
        if parts > 1:
            yield f'cluster.policy.{name} = {parts}: with trainer.backend = "torch" each rank has the whole model'


def _on_megatron(cluster: ClusterSection, layout: Layout, shape: ModelShape) -> Iterator[str]:
    experts, tensor = cluster.policy.expert_parallel, cluster.policy.tensor_parallel
    if tensor % experts:
        yield (
            f"cluster.policy.expert_parallel = {experts}: experts are dealt among the GPUs that share a matrix, here "
            f"{tensor}, and never over copies of the model"
        )
    counts = Counts(shape.heads, shape.kv_heads, shape.feed_forward or 0, shape.vocabulary, shape.experts or 0)
    if refusal := layout.refusal(counts):
        yield refusal
    for key, value, is_asked, what in (
        ("full_attention_every", shape.full_attention_every, shape.full_attention_every > 1, "linear attention"),
        ("output_gate", str(shape.output_gate).lower(), shape.output_gate, "gate on attention"),
        ("shared_feed_forward", shape.shared_feed_forward, bool(shape.shared_feed_forward), "shared expert"),
    ):
        if is_asked:
            yield f'policy.shape.{key} = {value}: trainer.backend = "megatron" computes no {what}'


def _on_engines(cluster: ClusterSection, engine_gpus: int) -> Iterator[str]:
    if engine_gpus > cluster.gpus_per_node:
        yield (
            f"engine.tensor_parallel = {engine_gpus}: an engine worker starts vLLM on one node, of "
            f"{cluster.gpus_per_node} GPUs"
        )
    if cluster.generation.expert_parallel > 1:
        yield (
            f"cluster.generation.expert_parallel = {cluster.generation.expert_parallel}: engines are started without "
            "vLLM's expert parallelism"
        )
