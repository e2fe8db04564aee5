"""A task set from several packages: some to train on, some held out as a whole."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from stepwell.sandbox.protocol import SandboxFactory
from stepwell.tasks.forge.task_set import TaskSet
from stepwell.tasks.packages.forge import ForgedPackage, PackageYield, Progress, Share, forge_package
from stepwell.tasks.packages.sources import PACKAGES, PackageTree, source_tree
from stepwell.tasks.task import Task

HELD_OUT = ("cachetools", "xmltodict")
"""Packages that training never sees, unless a plan says otherwise."""


class SetPlan(BaseModel):
    """Which packages give how many tasks."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    seed: int = Field(default=0, ge=0)
    """The same seed and counts give the same set."""
    packages: tuple[str, ...] = tuple(name for name in PACKAGES if name not in HELD_OUT)
    """Packages of training and validation."""
    held_out: tuple[str, ...] = HELD_OUT
    """Packages that training never sees."""
    train: int = Field(default=44, ge=0)
    """Training tasks of each package, at most."""
    validation: int = Field(default=12, ge=0)
    """Tasks of each package's held-out functions, at most."""
    heldout: int = Field(default=40, ge=0)
    """Tasks of each held-out package, at most."""

    def shares(self) -> dict[str, Share]:
        """Package to what it gives.

        Raises:
            ValueError: a package is unknown, named twice, or both trained on and held out.
        """
        named = [*self.packages, *self.held_out]
        unknown = sorted(set(named) - PACKAGES.keys())
        if unknown:
            raise ValueError(f"no package {unknown[0]!r} to forge from; there are {', '.join(PACKAGES)}")
        twice = sorted({name for name in named if named.count(name) > 1})
        if twice:
            raise ValueError(f"{twice[0]} is named twice; a package is trained on or held out, and only once")
        trained = Share(train=self.train, validation=self.validation)
        return dict.fromkeys(self.packages, trained) | dict.fromkeys(self.held_out, Share(heldout=self.heldout))


class NotEnoughTasks(ValueError):
    """Packages give fewer tasks than were asked for."""


@dataclass(frozen=True)
class ForgedSet:
    """A set, and what came of each package."""

    tasks: TaskSet
    made: tuple[PackageYield, ...]


async def forge_set(
    plan: SetPlan,
    factory: SandboxFactory,
    cache_folder: Path,
    *,
    told: Callable[[PackageYield], None] | None = None,
    shown: Callable[[Progress], None] | None = None,
    at_once: int = 0,
) -> ForgedSet:
    """Forges the set of a plan; see `forge_trees`.

    Raises:
        PackageUnavailable: a source distribution cannot be had.
        SandboxError: a sandbox failed.
        ValueError: the plan names a package wrongly.
    """
    shares = plan.shares()
    trees = [await asyncio.to_thread(source_tree, PACKAGES[name], cache_folder) for name in shares]
    wanted = list(zip(trees, shares.values(), strict=True))
    return await forge_trees(wanted, plan.seed, factory, cache_folder, told=told, shown=shown, at_once=at_once)


async def forge_trees(
    wanted: Sequence[tuple[PackageTree, Share]],
    seed: int,
    factory: SandboxFactory,
    cache_folder: Path,
    *,
    told: Callable[[PackageYield], None] | None = None,
    shown: Callable[[Progress], None] | None = None,
    at_once: int = 0,
) -> ForgedSet:
    """Forges package by package; what is in the cache already is not forged again.

    Args:
        wanted: Each package with how many tasks it is to give.
        seed: Which of the possible defects are taken.
        factory: Sandboxes with pytest in their site-packages.
        cache_folder: Where forged tasks are kept.
        told: Is told of each package when it is done.
        shown: Is told how far a package has come.
        at_once: Defects tried at once, by default one a core.

    Raises:
        SandboxError: a sandbox failed.
    """
    forged: list[ForgedPackage] = []
    for tree, share in wanted:
        package = await forge_package(tree, seed, share, factory, cache_folder, at_once=at_once, shown=shown)
        forged.append(package)
        if told is not None:
            told(package.made)
    return ForgedSet(assembled(forged), tuple(package.made for package in forged))


def assembled(forged: Sequence[ForgedPackage]) -> TaskSet:
    """One set of the tasks of packages, which take turns; training from easy to hard."""
    train = _in_turns([one.train for one in forged])
    return TaskSet(
        train=tuple(sorted(train, key=lambda task: task.difficulty)),
        validation=tuple(_in_turns([one.validation for one in forged])),
        confirm=(),
        heldout_family=tuple(_in_turns([one.heldout for one in forged])),
    )


def _in_turns(rows: Sequence[Sequence[Task]]) -> list[Task]:
    """The first of each row, then the second of each, to the end of the longest."""
    return [task for turn in zip_longest(*rows) for task in turn if task is not None]
