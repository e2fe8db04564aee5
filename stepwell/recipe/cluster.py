"""Where a run lies on a cluster: its pools of nodes, and how the model is cut over their GPUs."""

from typing import Self

from pydantic import Field, model_validator

from stepwell.policy.trainers.megatron.layout import Layout
from stepwell.recipe.model_shape import ModelShape
from stepwell.recipe.sections import Section


class PolicyPool(Section):
    """The nodes that train."""

    nodes: int = Field(ge=1)
    """Nodes."""
    tensor_parallel: int = Field(default=1, ge=1)
    """GPUs that share each matrix."""
    pipeline_parallel: int = Field(default=1, ge=1)
    """Stages that the layers are cut into."""
    context_parallel: int = Field(default=1, ge=1)
    """GPUs that share a sequence."""
    expert_parallel: int = Field(default=1, ge=1)
    """GPUs of a stage that share the experts."""


class GenerationPool(Section):
    """The nodes that generate."""

    nodes: int = Field(ge=1)
    """Nodes."""
    expert_parallel: int = Field(default=1, ge=1)
    """GPUs of an engine that share the experts whole, instead of a slice of each; all of an engine's, or 1. An engine
    has `engine.tensor_parallel` GPUs."""


class ClusterSection(Section):
    """Two pools of equal nodes. A run with this section starts no worker: `stepwell worker` does, on each node."""

    gpus_per_node: int = Field(ge=1)
    """GPUs of a node."""
    gpu_memory_gb: float = Field(gt=0)
    """Memory of a GPU, in 10^9 bytes."""
    policy: PolicyPool
    """The nodes that train."""
    generation: GenerationPool
    """The nodes that generate."""

    @model_validator(mode="after")
    def _divides(self) -> Self:
        pool = self.policy
        if self.policy_gpus % self.replica_gpus:
            raise ValueError(
                f"the policy pool has {self.policy_gpus} GPUs, and a replica of the model needs {self.replica_gpus} "
                f"(tensor {pool.tensor_parallel} x pipeline {pool.pipeline_parallel} x context {pool.context_parallel})"
                ": the pool must be a multiple of it"
            )
        if self.stage_gpus % pool.expert_parallel:
            raise ValueError(
                f"policy.expert_parallel is {pool.expert_parallel}, which does not divide the {self.stage_gpus} GPUs "
                "of a pipeline stage"
            )
        return self

    @property
    def policy_gpus(self) -> int:
        """GPUs that train."""
        return self.policy.nodes * self.gpus_per_node

    @property
    def generation_gpus(self) -> int:
        """GPUs that generate."""
        return self.generation.nodes * self.gpus_per_node

    @property
    def replica_gpus(self) -> int:
        """GPUs that hold the model once, experts aside."""
        return self.policy.tensor_parallel * self.policy.pipeline_parallel * self.policy.context_parallel

    @property
    def data_parallel(self) -> int:
        """Replicas that share a step's micro-batches."""
        return self.policy_gpus // self.replica_gpus

    @property
    def stage_gpus(self) -> int:
        """GPUs of one pipeline stage."""
        return self.policy_gpus // self.policy.pipeline_parallel


def refuse_contradictions(
    cluster: ClusterSection, shape: ModelShape, *, batch: int, engines: int, engine_gpus: int
) -> None:
    """Refuses a cluster that does not fit the model, the batch or the engines of its recipe.

    Args:
        cluster: The cluster.
        shape: The model.
        batch: Rollouts of a training step.
        engines: Engines, as the recipe says.
        engine_gpus: GPUs of one engine.

    Raises:
        ValueError: which figures contradict each other.
    """
    pool = cluster.policy
    if batch % cluster.data_parallel:
        raise ValueError(
            f"a step has {batch} rollouts, which {cluster.data_parallel} replicas of the policy cannot share evenly"
        )
    for name, parts in (
        ("cluster.policy.tensor_parallel", pool.tensor_parallel),
        ("engine.tensor_parallel", engine_gpus),
    ):
        if shape.heads % parts:
            raise ValueError(f"{name} is {parts}, which does not divide the {shape.heads} heads of the model")
    if shape.layers % pool.pipeline_parallel:
        raise ValueError(
            f"cluster.policy.pipeline_parallel is {pool.pipeline_parallel}, which does not divide the {shape.layers} "
            "layers of the model"
        )
    _refuse_expert_parallel("cluster.policy", pool.expert_parallel, shape)
    _refuse_expert_parallel("cluster.generation", cluster.generation.expert_parallel, shape)
    if cluster.generation.expert_parallel not in (1, engine_gpus):
        raise ValueError(
            f"cluster.generation.expert_parallel is {cluster.generation.expert_parallel}, and an engine has "
            f"{engine_gpus} GPUs: vLLM shares experts over all of them or over none"
        )
    if cluster.generation_gpus < engine_gpus:
        raise ValueError(
            f"the generation pool has {cluster.generation_gpus} GPUs, too few for one engine of {engine_gpus}"
        )
    if cluster.generation_gpus != engines * engine_gpus:
        raise ValueError(
            f"the generation pool has {cluster.generation_gpus} GPUs and an engine {engine_gpus}, but engines is "
            f"{engines}: wanted {cluster.generation_gpus / engine_gpus:g}"
        )


def refuse_other_layout(cluster: ClusterSection, layout: Layout) -> None:
    """Refuses a trainer that cuts the model otherwise than the pool is laid out.

    Args:
        cluster: The cluster.
        layout: The trainer's, of `trainer.backend = "megatron"`.

    Raises:
        ValueError: which key, its value, what is allowed, and what to do.
    """
    pool, copies = cluster.policy, cluster.data_parallel
    wanted = [
        ("tensor_parallel", layout.tensor, pool.tensor_parallel, "cluster.policy.tensor_parallel says so"),
        (
            "data_parallel",
            layout.data,
            copies,
            f"the {cluster.policy_gpus} GPUs of cluster.policy hold the model that often, {cluster.replica_gpus} each",
        ),
    ]
    if pool.tensor_parallel % pool.expert_parallel == 0:  # another is more than a trainer's key can say
        asks = "cluster.policy.expert_parallel says so"
        wanted.append(("expert_parallel", layout.expert, pool.expert_parallel, asks))
    for key, found, allowed, why in wanted:
        if found != allowed:
            raise ValueError(
                f"trainer.{key} is {found}, allowed: {allowed}, since {why}; set trainer.{key} = {allowed}, or change "
                "cluster.policy"
            )


def _refuse_expert_parallel(name: str, parts: int, shape: ModelShape) -> None:
    if parts == 1:
        return
    if shape.experts is None:
        raise ValueError(f"{name}.expert_parallel would do nothing: the model has no experts")
    if shape.experts % parts:
        raise ValueError(f"{name}.expert_parallel is {parts}, which does not divide the {shape.experts} experts")
