"""Tasks from a real package: one defect in one function, kept if the package's own tests tell it from the original."""

import asyncio
import hashlib
import json
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePosixPath

from stepwell.events.canonical import canonical_json, digest_of_json
from stepwell.sandbox.protocol import ExecEnd, SandboxError, SandboxFactory, SandboxLimits
from stepwell.tasks.grading.canaries import with_canaries
from stepwell.tasks.grading.grade import grade
from stepwell.tasks.grading.run_tests import run_tests
from stepwell.tasks.grading.verdict import Failure, grader_digest
from stepwell.tasks.packages.issue import issue_text
from stepwell.tasks.packages.mutations import Mutation, mutations_of
from stepwell.tasks.packages.sources import PACKAGES, PackageSource, source_files
from stepwell.tasks.task import Task

SUITE_TIMEOUT_S = 60.0
"""Wall clock of all tests of the package as it is."""
DEFECT_TIMEOUT_S = 15.0
"""The same with a defect: one that makes a loop endless is no task."""
TASK_TIMEOUT_S = 60.0
COMPANIONS = 24
"""Most tests that pass with the defect too and are hidden with those that fail."""
AT_ONCE = 4
"""Candidates tried at once."""
HELD_OUT_SHARE = 4
"""One function in this many is held out of training, whatever the seed."""


class NotEnoughTasks(ValueError):
    """A package does not give as many tasks as were asked for."""


@dataclass(frozen=True)
class _Candidate:
    path: str
    mutation: Mutation

    @property
    def held_out(self) -> bool:
        """Whether its function is held out of training."""
        digest = hashlib.sha256(f"{self.path}:{self.mutation.function}".encode()).digest()
        return digest[0] % HELD_OUT_SHARE == 0


@dataclass(frozen=True)
class _Package:
    source: PackageSource
    files: dict[str, str]
    """The work tree without a defect, tests included."""
    tests: tuple[str, ...]
    """Ids of the tests that passed twice."""


async def forge_package(
    name: str, seed: int, count: int, factory: SandboxFactory, *, held_out: int = 0, cache_folder: Path | None = None
) -> list[Task]:
    """Forges tasks; the same arguments give the same tasks, which are kept in the cache.

    Args:
        name: One of `PACKAGES`.
        seed: Which of the possible defects are taken, and in which order they are tried.
        count: How many tasks, those held out included.
        factory: Sandboxes with pytest in their site-packages.
        held_out: How many of them are of functions that no training task touches.
        cache_folder: Where archives and forged tasks are kept; by default `packages` in `$STEPWELL_HOME`.

    Returns:
        The training tasks, easy before hard, then `held_out` tasks of the split `validation`.

    Raises:
        KeyError: there is no such package.
        NotEnoughTasks: the package gives fewer.
        PackageUnavailable: its source cannot be had.
        SandboxError: a sandbox failed.
    """
    if name not in PACKAGES:
        raise KeyError(f"no package {name!r} to forge from; there are {', '.join(sorted(PACKAGES))}")
    source = PACKAGES[name]
    folder = cache_folder or Path(os.environ.get("STEPWELL_HOME", ".stepwell")) / "packages"
    key = digest_of_json([name, source.sha256, seed, count, held_out, _forge_digest(), grader_digest()])
    kept = folder / f"{name}-{key[:32]}.json"
    if kept.is_file():
        return [Task.model_validate(task) for task in json.loads(kept.read_text())]
    files = await asyncio.to_thread(source_files, source, folder)
    package = _Package(source, files, await _stable_tests(source, files, factory))
    pool = _candidates(package, seed)
    train = await _accept(package, [one for one in pool if not one.held_out], count - held_out, factory)
    validation = await _accept(package, [one for one in pool if one.held_out], held_out, factory)
    train = sorted(train, key=lambda task: task.difficulty)
    tasks = [*train, *(task.model_copy(update={"split": "validation"}) for task in validation)]
    partial = kept.with_suffix(f".{os.getpid()}")
    partial.write_bytes(canonical_json([task.model_dump(mode="json") for task in tasks]))
    partial.replace(kept)
    return tasks


def _candidates(package: _Package, seed: int) -> list[_Candidate]:
    """Every defect of every module, in the seed's order."""
    source = package.source
    candidates = [
        _Candidate(path, mutation) for path in source.mutated for mutation in mutations_of(package.files[path])
    ]
    random.Random(f"{source.name}/{seed}").shuffle(candidates)
    return candidates


async def _accept(
    package: _Package, candidates: Sequence[_Candidate], count: int, factory: SandboxFactory
) -> list[Task]:
    """The first `count` candidates that make a task, each defect once."""
    accepted: list[Task] = []
    seen: set[str] = set()
    for start in range(0, len(candidates), AT_ONCE):
        if len(accepted) >= count:
            break
        fresh = [one for one in candidates[start : start + AT_ONCE] if one.mutation.source not in seen]
        seen.update(one.mutation.source for one in fresh)
        made = await asyncio.gather(*(_task_of(package, one, factory) for one in fresh))
        accepted += [task for task in made if task is not None]
    if len(accepted) < count:
        raise NotEnoughTasks(
            f"{package.source.name} gives {len(accepted)} tasks where {count} were asked for; ask for fewer"
        )
    return accepted[:count]


async def _task_of(package: _Package, candidate: _Candidate, factory: SandboxFactory) -> Task | None:
    """The task of a defect, or None if the tests do not tell it from the original, or not each time."""
    mutation = candidate.mutation
    tree = _encoded({**package.files, candidate.path: mutation.source})
    run = await run_tests(tree, package.tests, "pytest", factory, timeout_s=DEFECT_TIMEOUT_S)
    failing = [test for test in package.tests if test in run.tests and not run.tests[test].passed]
    if run.end is not ExecEnd.EXITED or not run.ended or not 0 < len(failing) <= len(package.tests) // 2:
        return None
    hidden = {test.partition("::")[0] for test in failing}
    companions = [test for test in package.tests if test.partition("::")[0] in hidden and test not in failing]
    module = str(PurePosixPath(candidate.path).with_suffix("")).replace("/", ".").removesuffix(".__init__")
    details = [run.tests[test].detail for test in failing]
    digest = hashlib.sha256(mutation.source.encode()).hexdigest()
    task = Task(
        id=f"{package.source.name}/{module}.{mutation.function}/{mutation.kind}-{digest[:8]}",
        family=package.source.name,
        split="train",
        difficulty=1 + (mutation.function_lines > 12) + (mutation.function_lines > 30) + (len(failing) == 1),
        issue=issue_text(module, mutation.function, package.files, details),
        files={path: text for path, text in package.files.items() if path not in hidden}
        | {candidate.path: mutation.source},
        hidden={path: package.files[path] for path in sorted(hidden)},
        gold={candidate.path: package.files[candidate.path]},
        grader="pytest",
        protected=(package.source.tests,),
        expected=tuple(sorted([*failing, *companions[:COMPANIONS]])),
        timeout_s=TASK_TIMEOUT_S,
    )
    return task if await _holds(task, factory) else None


async def _holds(task: Task, factory: SandboxFactory) -> bool:
    """Whether the gold patch passes and doing nothing fails, twice each, under different orders and canaries."""
    for seed in (1, 2):
        for changed, wanted in ((_encoded(task.gold), 1.0), ({}, 0.0)):
            verdict = await grade(task, changed, factory, seed=seed)
            if isinstance(verdict, Failure):
                raise SandboxError(f"task {task.id} could not be graded: {verdict.cause}")
            if verdict.value != wanted:
                return False
    return True


async def _stable_tests(source: PackageSource, files: dict[str, str], factory: SandboxFactory) -> tuple[str, ...]:
    """Ids of the package's tests that pass twice without a defect, and whose canaries fail.

    Raises:
        SandboxError: they cannot be collected.
    """
    tree = _encoded(files)
    limits = replace(SandboxLimits(), output_bytes=1 << 20)
    sandbox = await factory.create(tree, limits)
    try:
        command = ["python3", "-m", "pytest", "--collect-only", "-q", "-c", "/dev/null", "--rootdir=/work"]
        command += ["--import-mode=importlib", "-p", "no:cacheprovider", source.tests]
        result = await sandbox.exec(command, timeout_s=SUITE_TIMEOUT_S)
    finally:
        await sandbox.destroy()
    found = sorted({line for line in result.output.decode(errors="replace").splitlines() if "::" in line})
    stable = found
    for _ in range(2):
        run = await run_tests(tree, stable, "pytest", factory, timeout_s=SUITE_TIMEOUT_S)
        stable = [test for test in stable if test in run.tests and run.tests[test].passed]
    hidden = {path: files[path] for path in {test.partition("::")[0] for test in stable}}
    made = with_canaries(hidden, stable, seed=0)
    run = await run_tests(
        tree | _encoded(made.files), list(made.canaries), "pytest", factory, timeout_s=SUITE_TIMEOUT_S
    )
    loose = {made.canaries[test] for test, said in run.tests.items() if said.passed}
    stable = [test for test in stable if test not in loose]
    if not stable:
        said = result.output[-500:].decode(errors="replace")
        raise SandboxError(f"no test of {source.name} passes in the sandbox: {said}")
    return tuple(stable)


def _encoded(files: dict[str, str]) -> dict[str, bytes]:
    return {path: text.encode() for path, text in files.items()}


@cache
def _forge_digest() -> str:
    """Digest over the sources of this package."""
    return digest_of_json([file.read_text() for file in sorted(Path(__file__).parent.glob("*.py"))])
