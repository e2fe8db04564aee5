"""The plan of a run on a cluster: what a recipe needs of it, and how long the reference took. Nothing is opened."""

from dataclasses import dataclass

from stepwell.mlperf.engine_memory import EngineMemory, engine_memory
from stepwell.mlperf.parameters import active_parameters, parameters
from stepwell.mlperf.reference_settings import base_learning_rate, gradient_clip_norm
from stepwell.mlperf.reference_times import TIMES, ReferenceTimes
from stepwell.mlperf.trainer_memory import TrainerMemory, trainer_memory
from stepwell.recipe.recipe import FolderPolicy, Recipe
from stepwell.recipe.unexecutable import unexecutable
from stepwell.rl.schedule import first_evaluation

GB = 1e9
"""Bytes of a gigabyte, as GPUs are sold by."""
RELATIVE = 1e-6
"""Bound within which a learning rate or a norm is the formula's."""


@dataclass(frozen=True)
class Rollouts:
    """Rollouts and the sandboxes for them."""

    step: int
    """Of a training step."""
    at_once: int
    """Under way at once at most: the steps that a version may generate begin together."""
    validation: int
    """Of a validation."""
    places: int
    """Sandboxes at once, of all sandbox workers that the recipe names."""
    workers_for_training: int
    """Sandbox workers with which no training rollout waits for a sandbox."""
    workers_for_validation: int
    """The same of a validation."""


@dataclass(frozen=True)
class ClusterPlan:
    """What a recipe comes to."""

    nodes_policy: int
    nodes_generation: int
    gpus_per_node: int
    gpu_memory_gb: float
    ranks: int
    """Trainer processes, one a GPU."""
    data_parallel: int
    micro_batches: int
    """Rollouts that each replica trains in a step, before packing."""
    engines: int
    engine_gpus: int
    queues: tuple[str, ...]
    """Task queues, and what serves each."""
    parameters: int
    active_parameters: int
    source: str
    """Where the figures of the model were read."""
    unconfirmed: tuple[str, ...]
    """Figures of the model without confirmation."""
    trainer: TrainerMemory
    engine: EngineMemory
    rollouts: Rollouts
    first_validated: int
    """Version that is validated first."""
    times: ReferenceTimes | None
    """The reference's at this batch size; None: it published none."""
    expected_run_s: float | None
    """The reference's opening, steps to the first validation, and that validation."""
    too_full: tuple[str, ...]
    """Pools whose estimate is above a GPU's memory."""
    differs: tuple[str, ...]
    """Where the recipe is not the benchmark's, as the closed division fixes it."""
    unexecutable: tuple[str, ...]
    """What Stepwell cannot do of it."""


def cluster_plan(recipe: Recipe) -> ClusterPlan:
    """The plan of a recipe with a section `cluster`.

    Raises:
        ValueError: it has none.
    """
    cluster, policy = recipe.cluster, recipe.policy
    if cluster is None or not isinstance(policy, FolderPolicy) or policy.shape is None:
        raise ValueError(f"recipe {recipe.name} has no section [cluster] to plan for")
    shape = policy.shape
    batch, engine_gpus = recipe.batch, recipe.engine.tensor_parallel or 1
    counts = parameters(shape)
    trainer = trainer_memory(shape, cluster, recipe.trainer.packing.micro_batch_tokens)
    engine = engine_memory(
        shape, gpus=engine_gpus, sequences=recipe.engine.max_batch, context=recipe.engine.max_context
    )
    times = TIMES.get(batch)
    first = recipe.plan().validation.first
    limit = cluster.gpu_memory_gb * GB
    return ClusterPlan(
        nodes_policy=cluster.policy.nodes,
        nodes_generation=cluster.generation.nodes,
        gpus_per_node=cluster.gpus_per_node,
        gpu_memory_gb=cluster.gpu_memory_gb,
        ranks=cluster.policy_gpus,
        data_parallel=cluster.data_parallel,
        micro_batches=batch // cluster.data_parallel,
        engines=recipe.engines,
        engine_gpus=engine_gpus,
        queues=_queues(recipe),
        parameters=counts.total,
        active_parameters=active_parameters(shape),
        source=shape.source,
        unconfirmed=shape.unconfirmed,
        trainer=trainer,
        engine=engine,
        rollouts=_rollouts(recipe),
        first_validated=first,
        times=times,
        expected_run_s=None if times is None else times.expected_run_s(first),
        too_full=tuple(
            name for name, total in (("policy", trainer.total), ("generation", engine.total)) if total > limit
        ),
        differs=tuple(_differences(recipe)),
        unexecutable=tuple(unexecutable(recipe)),
    )


def _queues(recipe: Recipe) -> tuple[str, ...]:
    return (
        "control: 1 control worker",
        f"trainer: 1 trainer worker, {recipe.cluster.policy_gpus if recipe.cluster else recipe.trainer.ranks} ranks",
        f"engine-<id>: {recipe.engines} engine workers, a queue each",
        f"sandbox: {recipe.sandbox_workers} sandbox workers",
    )


def _rollouts(recipe: Recipe) -> Rollouts:
    at_once = recipe.batch * (1 + recipe.run.max_staleness)
    validation = recipe.validation.tasks * recipe.validation.samples
    each = recipe.sandbox.concurrency
    return Rollouts(
        step=recipe.batch,
        at_once=at_once,
        validation=validation,
        places=each * recipe.sandbox_workers,
        workers_for_training=-(-at_once // each),
        workers_for_validation=-(-validation // each),
    )


def _differences(recipe: Recipe) -> list[str]:
    """Keys whose values checker, rules or reference fix for the closed division, where they are others."""
    batch, schedule, rl = recipe.batch, recipe.plan().validation, recipe.rl
    fixed: list[tuple[str, float | str | bool | None, float | str | bool | None]] = [
        ("run.samples_per_prompt", recipe.run.samples_per_prompt, 16),
        ("run.max_staleness", recipe.run.max_staleness, 1),
        ("rl.loss", rl.loss, "grpo"),
        ("rl.loss_agg_mode", rl.loss_agg_mode, "token_mean"),
        ("rl.baseline", rl.baseline, "leave_one_out"),
        ("rl.normalise", rl.normalise, "baseline_std"),
        ("rl.shuffle_rewards", rl.shuffle_rewards, False),
        ("rl.overlong_filtering", rl.overlong_filtering, True),
        ("rl.overlong_buffer_length", rl.overlong_buffer_length, None),
        ("rl.force_on_policy_ratio", rl.force_on_policy_ratio, True),
        ("rl.importance", rl.importance, "seq_mask_tis"),
        ("rl.importance_min", rl.importance_min, 0.999),
        ("rl.importance_max", rl.importance_max, 1.002),
        ("rl.mismatch_max", rl.mismatch_max, 2.0),
        ("trainer.freeze_router", recipe.trainer.freeze_router, True),
        ("optimiser.learning_rate", recipe.optimiser.learning_rate, base_learning_rate(batch)),
        ("optimiser.max_grad_norm", recipe.optimiser.max_grad_norm, gradient_clip_norm(batch)),
        ("optimiser.beta1", recipe.optimiser.beta1, 0.9),
        ("optimiser.beta2", recipe.optimiser.beta2, 0.999),
        ("optimiser.epsilon", recipe.optimiser.epsilon, 1e-8),
        ("optimiser.weight_decay", recipe.optimiser.weight_decay, 0.0),
        ("optimiser.warmup_steps", recipe.optimiser.warmup_steps, 0),
        ("optimiser.decay", recipe.optimiser.decay, "constant"),
        ("agent.max_context_tokens", recipe.agent.max_context_tokens, 65_536),
        ("agent.max_turns", recipe.agent.max_turns, 30),
        ("agent.wall_clock_s", recipe.agent.wall_clock_s, 1800.0),
        ("agent.command_timeout_s", recipe.agent.command_timeout_s, 60.0),
        ("sampling.temperature", recipe.sampling.temperature, 1.0),
        ("sampling.top_p", recipe.sampling.top_p, 1.0),
        ("validation.tasks", recipe.validation.tasks, 251),
        ("validation.samples", recipe.validation.samples, 4),
        ("validation.temperature", recipe.validation.temperature, 0.1),
        ("validation.top_p", recipe.validation.top_p, 0.95),
        ("validation.first", schedule.first, first_evaluation(batch)),
        ("validation.every", schedule.every, 1),
        ("validation.initial", schedule.initial, False),
        ("validation.target", schedule.target, 0.69),
    ]
    return [f"{key} is {found}, the benchmark has {wanted}" for key, found, wanted in fixed if not _same(found, wanted)]


def _same(found: float | str | bool | None, wanted: float | str | bool | None) -> bool:
    if isinstance(wanted, float) and isinstance(found, int | float):
        return abs(found - wanted) <= RELATIVE * abs(wanted)
    return found == wanted
