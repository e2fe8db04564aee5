"""The graph: each thing of a run, what it came from, what came of it."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from stepwell.audit.provenance import generation, grading, groups, named, run_life, serving, training, validating
from stepwell.audit.provenance.node import Edge, Node
from stepwell.audit.provenance.reference import Ref
from stepwell.audit.provenance.source import RunSource


def _none(_: RunSource, __: Ref) -> list[Edge]:
    return []


class Kind(NamedTuple):
    """How one kind of thing is looked at."""

    node: Callable[[RunSource, Ref], Node]
    """What is known of it. Raises NoSuchThing where the run has it not."""
    causes: Callable[[RunSource, Ref], list[Edge]] = _none
    """What it came from."""
    effects: Callable[[RunSource, Ref], list[Edge]] = _none
    """What came of it."""


KINDS: Mapping[str, Kind] = {
    "run": Kind(run_life.run, effects=run_life.run_effects),
    "end": Kind(run_life.end, run_life.end_causes),
    "operator": Kind(run_life.operator, effects=run_life.operator_effects),
    "version": Kind(training.version, training.version_causes, training.version_effects),
    "step": Kind(training.step, training.step_causes, training.step_effects),
    "batch": Kind(training.batch, training.batch_causes, training.batch_effects),
    "metric": Kind(training.metric, training.metric_causes),
    "validation": Kind(validating.validation, validating.validation_causes, validating.validation_effects),
    "group": Kind(groups.group, groups.group_causes, groups.group_effects),
    "rollout": Kind(generation.rollout, generation.rollout_causes, generation.rollout_effects),
    "turn": Kind(generation.turn, generation.turn_causes, generation.turn_effects),
    "token": Kind(generation.token, generation.token_causes, generation.token_effects),
    "attempt": Kind(serving.attempt, effects=serving.attempt_effects),
    "engine": Kind(serving.engine, effects=serving.engine_effects),
    "load": Kind(serving.load, serving.load_causes, serving.load_effects),
    "task": Kind(grading.task, grading.task_causes, grading.task_effects),
    "patch": Kind(grading.patch, grading.patch_causes, grading.patch_effects),
    "verdict": Kind(grading.verdict, grading.verdict_causes, grading.verdict_effects),
    "test": Kind(grading.test, grading.test_causes, grading.test_effects),
    "blob": Kind(named.blob, effects=named.blob_effects),
}
"""By the first word of a resolved name (see `named.resolve`)."""

WIDE = frozenset({"task", "load"})
"""Kinds of which much comes that is reached by groups as well: what came of one is told only where it is asked for."""


def node_of(source: RunSource, ref: Ref) -> Node:
    """What is known of a thing.

    Raises:
        NoSuchThing: the run has it not; names what it has.
    """
    return KINDS[ref.kind].node(source, ref)


def causes_of(source: RunSource, ref: Ref) -> list[Edge]:
    """What a thing came from, the nearest first."""
    return KINDS[ref.kind].causes(source, ref)


def effects_of(source: RunSource, ref: Ref) -> list[Edge]:
    """What came of a thing, the nearest first."""
    return KINDS[ref.kind].effects(source, ref)


@dataclass(frozen=True)
class Graph:
    """A thing with all that it came from and all that came of it."""

    root: Ref
    """The thing."""
    nodes: Mapping[Ref, Node]
    """It, its causes and their causes, its effects and their effects."""
    edges: tuple[Edge, ...]
    """Between them."""

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "root": str(self.root),
            "nodes": [
                {
                    "ref": str(ref),
                    "kind": ref.kind,
                    "title": node.title,
                    "events": [mark._asdict() for mark in node.events],
                    "figures": dict(node.figures),
                    "taint": node.taint or None,
                }
                for ref, node in self.nodes.items()
            ],
            "edges": [
                {
                    "cause": str(edge.cause),
                    "effect": str(edge.effect),
                    "why": edge.why,
                    "shown_by": None if edge.shown_by is None else edge.shown_by._asdict(),
                }
                for edge in self.edges
            ],
        }


def graph_of(source: RunSource, root: Ref, depth: int | None = None) -> Graph:
    """A thing's whole past and future.

    Args:
        source: What was read of the run.
        root: The thing, as `named.resolve` gives it.
        depth: Edges from it at most; None for all.

    Raises:
        NoSuchThing: the run has it not.
    """
    nodes, edges = {root: node_of(source, root)}, dict[tuple[Ref, Ref, str], Edge]()
    _walk(source, root, depth, nodes, edges, causes_of, lambda edge: edge.cause)
    _walk(source, root, depth, nodes, edges, effects_of, lambda edge: edge.effect)
    return Graph(root, nodes, tuple(edges.values()))


def _walk(
    source: RunSource,
    root: Ref,
    depth: int | None,
    nodes: dict[Ref, Node],
    edges: dict[tuple[Ref, Ref, str], Edge],
    edges_at: Callable[[RunSource, Ref], list[Edge]],
    end: Callable[[Edge], Ref],
) -> None:
    seen, ahead = {root}, deque([(root, 0)])
    while ahead:
        ref, far = ahead.popleft()
        if depth is not None and far >= depth:
            continue
        for edge in edges_at(source, ref):
            edges[edge.cause, edge.effect, edge.why] = edge
            other = end(edge)
            if other in seen:
                continue
            seen.add(other)
            if other not in nodes:
                nodes[other] = node_of(source, other)
            ahead.append((other, far + 1))
