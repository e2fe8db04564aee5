"""The graph as a tree that fits a screen: wide fans are counted, one of them is opened, and chains are not walked."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from stepwell.audit.provenance.graph import WIDE, causes_of, effects_of, node_of
from stepwell.audit.provenance.lineage import earlier_words, later_words
from stepwell.audit.provenance.node import Edge, Node
from stepwell.audit.provenance.reference import Ref
from stepwell.audit.provenance.source import RunSource

DEPTH = 7
"""Edges from the root that are shown, unless asked otherwise."""
FAN = 3
"""Of several things of one kind, how many are shown, and the first of them opened."""

PLURALS = {"batch": "batches", "patch": "patches", "end": "ends", "operator": "operators' acts"}
"""Kinds whose plural is not the word with an s."""


class More(NamedTuple):
    """Things of a kind that are not shown."""

    kind: str
    """Which kind."""
    number: int
    """How many."""

    def words(self) -> str:
        """As a line."""
        return f"and {self.number:,} more {self.kind if self.number == 1 else PLURALS.get(self.kind, f'{self.kind}s')}"


@dataclass(frozen=True)
class Branch:
    """A thing in the tree."""

    node: Node
    """What is known of it."""
    edge: Edge | None
    """What leads to it; None at the root."""
    below: tuple["Branch | More", ...] = ()
    """What follows, and how much more does that is not shown."""
    note: str = ""
    """Where a chain that is not walked leads."""


@dataclass(frozen=True)
class Explanation:
    """A thing, and both its trees."""

    causes: Branch
    """It, above all that it came from."""
    effects: Branch
    """It, above all that came of it."""

    @property
    def node(self) -> Node:
        """The thing."""
        return self.causes.node


class _Way(NamedTuple):
    """One of the two directions."""

    edges: Callable[[RunSource, Ref], list[Edge]]
    end: Callable[[Edge], Ref]
    is_forward: bool


def _cause(edge: Edge) -> Ref:
    return edge.cause


def _effect(edge: Edge) -> Ref:
    return edge.effect


_BACK = _Way(causes_of, _cause, is_forward=False)
_FORWARD = _Way(effects_of, _effect, is_forward=True)


def explain(source: RunSource, root: Ref, *, depth: int = DEPTH, fan: int | None = FAN) -> Explanation:
    """Both trees of a thing.

    Args:
        source: What was read of the run.
        root: The thing, as `named.resolve` gives it.
        depth: Edges from it at most.
        fan: Things of one kind that are shown, the first of them opened; None: all, and all opened.

    Raises:
        NoSuchThing: the run has it not.
    """
    return Explanation(
        _Tree(source, _BACK, depth, fan).branch(root, None, 0, frozenset()),
        _Tree(source, _FORWARD, depth, fan).branch(root, None, 0, frozenset()),
    )


class _Tree:
    def __init__(self, source: RunSource, way: _Way, depth: int, fan: int | None) -> None:
        self._source, self._way, self._depth, self._fan = source, way, depth, fan
        self._opened: set[Ref] = set()

    def branch(self, ref: Ref, edge: Edge | None, far: int, above: frozenset[Ref]) -> Branch:
        """A thing with what follows it."""
        node = node_of(self._source, ref)
        if not self._is_opened(ref, edge, far, above):
            return Branch(node, edge, note=self._note(ref, edge))
        self._opened.add(ref)
        by_kind: dict[str, list[Edge]] = {}
        for each in self._way.edges(self._source, ref):
            by_kind.setdefault(self._way.end(each).kind, []).append(each)
        below = list[Branch | More]()
        for kind, edges in by_kind.items():
            shown = edges if self._fan is None else edges[: self._fan]
            below += [self._below(each, far, above | {ref}, is_first=place == 0) for place, each in enumerate(shown)]
            if len(shown) < len(edges):
                below.append(More(kind, len(edges) - len(shown)))
        return Branch(node, edge, tuple(below))

    def _below(self, edge: Edge, far: int, above: frozenset[Ref], *, is_first: bool) -> Branch:
        ref = self._way.end(edge)
        if self._fan is None or is_first:
            return self.branch(ref, edge, far + 1, above)
        return Branch(node_of(self._source, ref), edge)

    def _note(self, ref: Ref, edge: Edge | None) -> str:
        """Where the chain of versions leads on."""
        if edge is None or {edge.cause.kind, edge.effect.kind} != {"version"}:
            return ""
        return later_words(self._source, ref) if self._way.is_forward else earlier_words(self._source, ref)

    def _is_opened(self, ref: Ref, edge: Edge | None, far: int, above: frozenset[Ref]) -> bool:
        """Whether what follows a thing is shown: not twice, not too far, not along a chain."""
        if edge is None:
            return True
        is_told_elsewhere = ref.kind in WIDE if self._way.is_forward else ref.kind == "test"
        is_walked = self._fan is None or not (edge.is_chain or is_told_elsewhere)
        return far < self._depth and is_walked and ref not in above and ref not in self._opened
