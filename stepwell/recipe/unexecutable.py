"""What a recipe for a cluster asks for and Stepwell cannot do: said in a plan, and refused when the run would begin."""

from stepwell.recipe.recipe import FolderPolicy, Recipe


def unexecutable(recipe: Recipe) -> list[str]:
    """Each in one sentence, with the key that asks for it; empty if there is nothing."""
    cluster = recipe.cluster
    if cluster is None:
        return []
    pool, engine_gpus = cluster.policy, recipe.engine.tensor_parallel or 1
    found: list[str] = []
    for name, parts, does in (
        ("pipeline_parallel", pool.pipeline_parallel, "cuts a model into stages"),
        ("context_parallel", pool.context_parallel, "shares a sequence between GPUs"),
        ("tensor_parallel", pool.tensor_parallel, "shares a matrix between GPUs"),
        ("expert_parallel", pool.expert_parallel, "shares experts between GPUs"),
    ):
        if parts > 1:
            found.append(f"cluster.policy.{name} = {parts}: no trainer backend {does}")
    if pool.nodes > 1:
        found.append(f"cluster.policy.nodes = {pool.nodes}: a trainer's ranks are processes of one machine")
    found.append(f"cluster.policy: the trainer computes on processors, not on its {cluster.policy_gpus} GPUs")
    if isinstance(recipe.policy, FolderPolicy) and recipe.policy.shape is not None:
        if recipe.policy.shape.full_attention_every > 1 and pool.tensor_parallel > 1:
            found.append("policy.shape.full_attention_every: no backend shares linear attention between GPUs")
        if recipe.policy.shape.experts is not None:
            found.append("policy.shape.experts: their router would be trained, and the benchmark has it frozen")
    if engine_gpus > cluster.gpus_per_node:
        found.append(
            f"engine.tensor_parallel = {engine_gpus}: an engine worker starts vLLM on one node, of "
            f"{cluster.gpus_per_node} GPUs"
        )
    if cluster.generation.expert_parallel > 1:
        found.append(
            f"cluster.generation.expert_parallel = {cluster.generation.expert_parallel}: engines are started without "
            "vLLM's expert parallelism"
        )
    return found
