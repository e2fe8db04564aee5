"""Which defects are tried, in which order, and which of them belong to training. Pure."""

import hashlib
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stepwell.tasks.packages.mutations import Mutation, mutations_of
from stepwell.tasks.packages.sources import PackageTree

HELD_OUT_SHARE = 4
"""One function in this many is held out of training, whatever the seed."""


@dataclass(frozen=True)
class Candidate:
    """A defect in a file of a package."""

    package: str
    path: str
    mutation: Mutation

    @property
    def function(self) -> str:
        """Path and qualified name of its function."""
        return f"{self.path}:{self.mutation.function}"

    @property
    def held_out(self) -> bool:
        """Whether its function is held out of training."""
        return is_held_out(self.package, self.path, self.mutation.function)


def is_held_out(package: str, path: str, function: str) -> bool:
    """Whether a function is held out of training; those inside it go with it."""
    outermost = function.partition(".<locals>")[0]
    return hashlib.sha256(f"{package}/{path}:{outermost}".encode()).digest()[0] % HELD_OUT_SHARE == 0


def candidates_of(tree: PackageTree, seed: int) -> list[Candidate]:
    """Every defect of every module, in the seed's order; the kinds take turns, so that rare ones are not lost."""
    found = [
        Candidate(tree.source.name, path, mutation)
        for path in tree.layout.modules
        for mutation in mutations_of(tree.files[path])
    ]
    return list(in_turns(found, random.Random(f"{tree.source.name}/{seed}")))


def in_turns(candidates: Iterable[Candidate], chance: random.Random) -> Iterator[Candidate]:
    """Shuffles candidates within each kind, then takes one of each kind in turn."""
    by_kind: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        by_kind.setdefault(candidate.mutation.kind, []).append(candidate)
    kinds = [by_kind[kind] for kind in sorted(by_kind)]
    for kind in kinds:
        chance.shuffle(kind)
    for turn in range(max(map(len, kinds), default=0)):
        yield from (kind[turn] for kind in kinds if turn < len(kind))
