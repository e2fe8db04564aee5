"""What `stepwell run RECIPE --dry-run` prints: the resolved recipe and, for a cluster, its plan."""

import json
from dataclasses import asdict

import tomli_w

from stepwell.mlperf.cluster_plan import GB, ClusterPlan, cluster_plan
from stepwell.mlperf.reference_times import Seconds
from stepwell.recipe.recipe import Recipe

WIDTH = 34
"""Columns of a row's name."""


def dry_run(recipe: Recipe, *, as_json: bool) -> str:
    """The recipe in TOML with the plan in comments under it, or both in JSON."""
    plan = None if recipe.cluster is None else cluster_plan(recipe)
    if as_json:
        planned = None if plan is None else _with_totals(plan)
        return json.dumps({"recipe": recipe.model_dump(mode="json"), "plan": planned}, indent=1) + "\n"
    text = tomli_w.dumps(recipe.model_dump(mode="json", exclude_none=True))
    if plan is None:
        return text
    return text + "".join(f"# {line}".rstrip() + "\n" for line in ["", "The plan", "", *plan_lines(plan)])


def plan_lines(plan: ClusterPlan) -> list[str]:
    """The plan, as a table for people."""
    return [
        *_places(plan),
        "",
        *_memory(plan),
        "",
        *_times(plan),
        "",
        *_remarks("Not as the closed division has it", plan.differs, "nothing that is checked"),
        *_remarks("Estimated to be too full for its GPUs", plan.too_full, "no pool"),
        *_remarks("Without confirmation", plan.unconfirmed, "no figure of the model"),
        *_remarks("Stepwell cannot do this, and refuses to start the run", plan.unexecutable, "nothing of it"),
    ]


def _row(name: str, text: str) -> str:
    return f"{name:<{WIDTH}}{text}"


def _places(plan: ClusterPlan) -> list[str]:
    each, rollouts = plan.gpus_per_node, plan.rollouts
    return [
        _row("nodes", f"{plan.nodes_policy + plan.nodes_generation} of {each} GPUs of {plan.gpu_memory_gb:g} GB"),
        _row("  policy", f"{plan.nodes_policy} nodes, {plan.ranks} ranks"),
        _row("    replicas", f"{plan.data_parallel}, of {plan.micro_batches} rollouts a step each"),
        _row("  generation", f"{plan.nodes_generation} nodes, {plan.engines} engines of {plan.engine_gpus} GPUs"),
        *(_row(name, queue) for name, queue in zip(["queues", "", "", ""], plan.queues, strict=True)),
        _row(
            "rollouts",
            f"{rollouts.step} a step, {rollouts.at_once} at once at most, {rollouts.validation} a validation",
        ),
        _row(
            "sandboxes",
            f"{rollouts.places} places; none waits with {rollouts.workers_for_training} workers in training, "
            f"{rollouts.workers_for_validation} in a validation",
        ),
    ]


def _memory(plan: ClusterPlan) -> list[str]:
    trainer, engine = plan.trainer, plan.engine
    parts = [
        ("weights, bfloat16", trainer.weights),
        ("gradients, float32", trainer.gradients),
        ("optimiser, float32", trainer.optimiser),
        ("activations: inputs of layers", trainer.kept),
        ("activations: one layer's inside", trainer.layer),
        ("activations: logits", trainer.logits),
        ("all of it", trainer.total),
    ]
    held = [
        ("weights, bfloat16", engine.weights),
        (f"KV cache of {engine.sequences} sequences", engine.kv_cache),
        ("states of linear attention", engine.states),
        ("all of it", engine.total),
    ]
    return [
        _row("model", f"{plan.parameters / 1e9:.1f} billion parameters, {plan.active_parameters / 1e9:.1f} a token"),
        _row("  figures from", plan.source),
        "memory of a GPU of the policy pool, estimated for a trainer like the reference's: copies of the model share",
        "the optimiser and compute every layer again in the backward pass; Stepwell's own does neither",
        *(_row(f"  {name}", f"{size / GB:6.1f} GB") for name, size in parts),
        "memory of a GPU of an engine, estimated",
        *(_row(f"  {name}", f"{size / GB:6.1f} GB") for name, size in held),
    ]


def _times(plan: ClusterPlan) -> list[str]:
    times = plan.times
    if times is None or plan.expected_run_s is None:
        return ["expected times: none, the reference published no run at this batch size"]
    phases = [
        ("opening: the first rollouts", times.opening),
        ("a step", times.step),
        ("  generation that is waited for", times.generation),
        ("  training", times.training),
        ("  weights to engines", times.sync),
        ("a validation", times.validation),
    ]
    return [
        "expected times: the reference's, of six seeds on 64 nodes of 4 GB300; mean (low to high)",
        *(_row(f"  {name}", _span(span)) for name, span in phases),
        _row("  of a step, what is none of these", f"{times.other:7.0f} s"),
        _row(f"  to the end of validation {plan.first_validated}", f"{plan.expected_run_s:7.0f} s"),
        _row("  the reference's whole runs", _span(times.run)),
    ]


def _span(seconds: Seconds) -> str:
    return f"{seconds.mean:7.0f} s ({seconds.low:.0f} to {seconds.high:.0f})"


def _remarks(title: str, remarks: tuple[str, ...], none: str) -> list[str]:
    return [f"{title}: {none}"] if not remarks else [f"{title}:", *(f"  {remark}" for remark in remarks)]


def _with_totals(plan: ClusterPlan) -> dict[str, object]:
    """The plan as JSON has it: bytes and seconds, and sums beside their parts."""
    fields = asdict(plan)
    fields["trainer"] = {**asdict(plan.trainer), "total": plan.trainer.total}
    fields["engine"] = {**asdict(plan.engine), "total": plan.engine.total}
    return fields
