"""Tasks from one package, as many as are asked for; the same arguments give the same tasks on as many cores as there
are."""

import asyncio
import json
import os
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import perf_counter

from pydantic import BaseModel, ConfigDict

from stepwell.events.canonical import digest_of_json
from stepwell.sandbox.protocol import SandboxFactory
from stepwell.tasks.grading.verdict import grader_digest
from stepwell.tasks.packages.baseline import Baseline, baseline_of
from stepwell.tasks.packages.candidates import Candidate, candidates_of
from stepwell.tasks.packages.sources import PackageTree
from stepwell.tasks.packages.trial import Trial, try_candidate
from stepwell.tasks.set_file import read_set, write_set
from stepwell.tasks.task import Split, Task

PER_FUNCTION = 6
"""Most tasks of one function."""


class Share(BaseModel):
    """How many tasks a package is to give."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    train: int = 0
    """Of functions that training may see."""
    validation: int = 0
    """Of functions that are held out of training."""
    heldout: int = 0
    """Of all functions of a package that is held out as a whole; then `train` and `validation` are 0."""

    @property
    def total(self) -> int:
        """Of all splits."""
        return self.train + self.validation + self.heldout


class PackageYield(BaseModel):
    """What came of a package."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    package: str
    asked: int
    """Tasks that were asked for."""
    tests: dict[str, int]
    """Tests of the package: those that `count`, and the others by what keeps them from it."""
    kept: dict[str, int]
    """Tasks by kind of defect."""
    tried: int
    """Defects run, or found to change nothing: those up to the last task, of functions that had room for more."""
    rejected: dict[str, int]
    """Those that made no task, by reason."""
    seconds: float
    """Wall clock, measured."""


@dataclass(frozen=True)
class Progress:
    """How far a package has come."""

    package: str
    asked: int
    """Tasks that are asked for."""
    tasks: int
    """Tasks that were made."""
    tried: int
    """Defects that were tried."""
    is_task: bool
    """Whether the last of them made a task."""


@dataclass(frozen=True)
class ForgedPackage:
    """Tasks of one package."""

    train: tuple[Task, ...]
    """Easy before hard."""
    validation: tuple[Task, ...]
    heldout: tuple[Task, ...]
    made: PackageYield

    @property
    def tasks(self) -> tuple[Task, ...]:
        """All of them."""
        return (*self.train, *self.validation, *self.heldout)


async def forge_package(
    tree: PackageTree,
    seed: int,
    share: Share,
    factory: SandboxFactory,
    cache_folder: Path,
    *,
    at_once: int = 0,
    shown: Callable[[Progress], None] | None = None,
) -> ForgedPackage:
    """Forges tasks, at most as many as are asked for, and keeps them in the cache.

    Args:
        tree: The package.
        seed: Which of the possible defects are taken, and in which order they are tried.
        share: How many tasks of which split. A smaller share gives a part of the tasks of a larger one.
        factory: Sandboxes with pytest in their site-packages.
        cache_folder: Where forged tasks are kept.
        at_once: Defects tried at once, by default one a core; the tasks do not depend on it.
        shown: Is told once the tests have run, and after each defect.

    Raises:
        SandboxError: a sandbox failed, or no test of the package can be used.
        ValueError: a share has both held-out and other tasks.
    """
    if share.heldout and (share.train or share.validation):
        raise ValueError(f"{tree.source.name} is held out as a whole or not at all, not {share}")
    key = digest_of_json([tree.source.name, tree.source.sha256, seed, share.model_dump(), forge_digest()])
    kept = cache_folder / f"{tree.source.name}-{key[:32]}"
    if kept.is_dir():
        return _sorted_out(read_set(kept / "tasks.jsonl"), PackageYield.model_validate_json(_text(kept)))
    started = perf_counter()
    baseline = await baseline_of(tree, factory)
    pool = candidates_of(tree, seed)
    width = at_once or len(os.sched_getaffinity(0))
    wanted: tuple[tuple[Split, int, list[Candidate]], ...] = (
        ("train", share.train, [one for one in pool if not one.held_out]),
        ("validation", share.validation, [one for one in pool if one.held_out]),
        ("heldout_family", share.heldout, pool),
    )
    trials: list[Trial] = []

    def show() -> None:
        if shown is not None:
            is_task = bool(trials) and trials[-1].task is not None
            shown(Progress(tree.source.name, share.total, _tasks_in(trials), len(trials), is_task))

    show()
    for split, count, candidates in wanted:
        if count:
            async with aclosing(_tried(candidates, count, split, baseline, factory, width)) as tried:
                async for trial in tried:
                    trials.append(trial)
                    show()
    tasks = [trial.task for trial in trials if trial.task is not None]
    made = _yield(baseline, share, trials, perf_counter() - started)
    await asyncio.to_thread(_keep, kept, tasks, made)
    return _sorted_out(tasks, made)


async def _tried(
    candidates: Sequence[Candidate], count: int, split: Split, baseline: Baseline, factory: SandboxFactory, width: int
) -> AsyncGenerator[Trial]:
    """Trials in the order of the candidates, up to the one that makes the last task that is wanted.

    What is run ahead, on other cores, counts only when its turn comes: so the result is that of trying one by one.
    """
    tasks = 0
    full: Counter[str] = Counter()
    waiting = iter(candidates)
    ahead: deque[tuple[Candidate, asyncio.Task[Trial]]] = deque()
    try:
        while tasks < count:
            for candidate in _with_room(waiting, full, width - len(ahead)):
                ahead.append((candidate, asyncio.create_task(try_candidate(candidate, baseline, split, factory))))
            if not ahead:
                break
            candidate, running = ahead.popleft()
            trial = await running
            if full[candidate.function] >= PER_FUNCTION:
                continue
            if trial.task is not None:
                tasks += 1
                full[candidate.function] += 1
            yield trial
    finally:
        for _, running in ahead:
            running.cancel()
        await asyncio.gather(*(running for _, running in ahead), return_exceptions=True)


def _with_room(waiting: Iterator[Candidate], full: Counter[str], most: int) -> Iterator[Candidate]:
    """The next candidates of functions that have not given their last task yet."""
    for _ in range(most):
        for candidate in waiting:
            if full[candidate.function] < PER_FUNCTION:
                yield candidate
                break


def _tasks_in(trials: Sequence[Trial]) -> int:
    return sum(trial.task is not None for trial in trials)


def _yield(baseline: Baseline, share: Share, trials: Sequence[Trial], seconds: float) -> PackageYield:
    kept = Counter(trial.candidate.mutation.kind for trial in trials if trial.task is not None)
    rejected = Counter(trial.rejection for trial in trials if trial.rejection is not None)
    return PackageYield(
        package=baseline.tree.source.name,
        asked=share.total,
        tests={"count": len(baseline.tests), **dict(sorted(Counter(baseline.set_aside.values()).items()))},
        kept=dict(sorted(kept.items())),
        tried=len(trials),
        rejected=dict(sorted(rejected.items())),
        seconds=round(seconds, 1),
    )


def _sorted_out(tasks: Sequence[Task], made: PackageYield) -> ForgedPackage:
    by_split: dict[str, list[Task]] = {}
    for task in tasks:
        by_split.setdefault(task.split, []).append(task)
    train = sorted(by_split.get("train", ()), key=lambda task: task.difficulty)
    return ForgedPackage(
        tuple(train), tuple(by_split.get("validation", ())), tuple(by_split.get("heldout_family", ())), made
    )


def _text(kept: Path) -> str:
    return (kept / "yield.json").read_text()


def _keep(kept: Path, tasks: Sequence[Task], made: PackageYield) -> None:
    """Writes both files and puts them in place at once; who comes second finds the same there."""
    partial = kept.with_name(f"{kept.name}.{os.getpid()}")
    partial.mkdir(parents=True, exist_ok=True)
    with (partial / "tasks.jsonl").open("w", encoding="utf-8") as file:
        write_set(tasks, file)
    (partial / "yield.json").write_text(made.model_dump_json())
    if kept.is_dir():
        for file in partial.iterdir():
            file.unlink()
        partial.rmdir()
    else:
        partial.rename(kept)


@cache
def forge_digest() -> str:
    """Digest over the sources of this package and of the grader: others may make other tasks."""
    folder = Path(__file__).parent
    sources = sorted(file for file in folder.rglob("*") if file.suffix in (".py", ".toml"))
    return digest_of_json([grader_digest(), *(json.dumps([file.name, file.read_text()]) for file in sources)])
