"""Tries one defect: a task, or the reason why it makes none."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from stepwell.sandbox.protocol import SandboxError, SandboxFactory
from stepwell.tasks.grading.verdict import Failure
from stepwell.tasks.packages.baseline import Baseline, agreed
from stepwell.tasks.packages.candidates import Candidate
from stepwell.tasks.packages.issue import issue_text
from stepwell.tasks.packages.recording import Recording, Unfinished, record
from stepwell.tasks.packages.source_text import is_other_program, spliced
from stepwell.tasks.packages.symptoms import Symptom, symptoms
from stepwell.tasks.patient_grading import grade_patiently
from stepwell.tasks.task import Origin, Split, Task

TASK_TIMEOUT_S = 60.0
TESTS_RUN = 150
"""Most tests that are run with a defect, drawn from those that run its line."""
FAILING = 24
"""Most failing tests that are expected to pass after a repair, drawn from all that fail."""
COMPANIONS = 16
"""Most tests that pass with the defect too and are hidden with those that fail."""

Rejection = Literal[
    "not another program",
    "no test runs it",
    "does not end",
    "does not load",
    "no test fails",
    "most tests fail",
    "out of memory",
    "asks the world",
    "no symptom",
    "not the same twice",
]
"""Why a defect makes no task."""


@dataclass(frozen=True)
class Trial:
    """What came of one defect."""

    candidate: Candidate
    task: Task | None
    rejection: Rejection | None


async def try_candidate(candidate: Candidate, baseline: Baseline, split: Split, factory: SandboxFactory) -> Trial:
    """Makes the task of a defect, if it is one.

    It is one if tests that pass without the defect fail with it, twice: recorded, then graded; if the gold patch passes
    them, as the package did when its baseline was taken; and if a call that such a test makes shows the difference.

    Raises:
        SandboxError: a sandbox failed, or the task could not be graded.
    """
    path, mutation = candidate.path, candidate.mutation
    source = baseline.tree.files[path]
    changed = spliced(source, mutation.edit)
    if not is_other_program(source, changed):
        return Trial(candidate, None, "not another program")
    covering = baseline.covering(path, mutation.traced)
    if not covering:
        return Trial(candidate, None, "no test runs it")
    digest = hashlib.sha256(f"{path}\0{changed}".encode()).hexdigest()
    run = drawn(covering, digest, TESTS_RUN)
    layout = baseline.tree.layout
    files = baseline.tree.files | {path: changed}
    recorded: list[Recording] = []
    for _ in range(2):  # What differs from one time to the next, such as an identity in a message, is no symptom.
        one = await record(
            files, layout.modules, layout.tests, factory, tests=run, budget=baseline.budget, cpu_s=baseline.cpu_s
        )
        shown = _shown(one, run, baseline)
        if isinstance(one, Unfinished) or isinstance(shown, str):
            return Trial(candidate, None, shown if isinstance(shown, str) else "does not end")
        recorded.append(one)
    first, second = (one.tests for one in recorded)
    both = {test: agreed(first[test], second[test]) for test in run}
    shown = _shown(Recording(both, recorded[0].cpu_s), run, baseline)
    if isinstance(shown, str):
        return Trial(candidate, None, shown)
    task = _task(candidate, changed, digest, covering, shown, baseline, split)
    if not await _holds(task, set(shown.failing), factory):
        return Trial(candidate, None, "not the same twice")
    return Trial(candidate, task, None)


@dataclass(frozen=True)
class _Shown:
    """What the tests show of a defect."""

    failing: list[str]
    passing: list[str]
    symptoms: list[Symptom]


def drawn(tests: Sequence[str], key: str, most: int) -> list[str]:
    """At most so many tests, in the order of a hash, so that those of one function are spread."""
    return sorted(tests, key=lambda test: hashlib.sha256(f"{key}{test}".encode()).digest())[:most]


def _shown(recorded: Recording | Unfinished, run: Sequence[str], baseline: Baseline) -> _Shown | Rejection:
    if isinstance(recorded, Unfinished):
        return "does not end"
    if not recorded.tests.keys() >= set(run):
        return "does not load"
    wrong = {test: recorded.tests[test] for test in run}
    failing = [test for test, said in wrong.items() if said.failed or not said.passed]
    if not failing:
        return "no test fails"
    if len(failing) > len(baseline.tests) // 2:
        return "most tests fail"
    if any((wrong[test].error or "").startswith("MemoryError") for test in failing):
        return "out of memory"  # Where it ends depends on the machine.
    if any(said.asked for said in wrong.values()):
        return "asks the world"  # So may what comes of it.
    found = symptoms(baseline.tests, {test: wrong[test] for test in failing})
    passing = [test for test in run if test not in set(failing)]
    return _Shown(failing, passing, found) if found else "no symptom"


def _task(
    candidate: Candidate,
    changed: str,
    digest: str,
    covering: Sequence[str],
    shown: _Shown,
    baseline: Baseline,
    split: Split,
) -> Task:
    tree, path, mutation = baseline.tree, candidate.path, candidate.mutation
    failing = drawn(shown.failing, digest, FAILING)
    hidden = {test.partition("::")[0] for test in failing}
    passing = set(shown.passing)
    known = passing | (baseline.tests.keys() - set(covering))  # A test that covers the line but was not run may fail.
    beside = [test for test in known if test.partition("::")[0] in hidden]
    near = drawn([test for test in beside if test in passing], digest, COMPANIONS)
    far = drawn([test for test in beside if test not in passing], digest, COMPANIONS - len(near))
    return Task(
        id=f"{tree.source.name}-{tree.source.version}/{mutation.kind}/{digest[:12]}",
        family=tree.source.name,
        split=split,
        difficulty=1 + (mutation.function_lines > 12) + (mutation.function_lines > 30) + (len(shown.failing) == 1),
        issue=issue_text(shown.symptoms, int(digest[:8], 16)),
        files={name: text for name, text in tree.files.items() if name not in hidden} | {path: changed},
        hidden={name: tree.files[name] for name in sorted(hidden)},
        gold={path: tree.files[path]},
        grader="pytest",
        protected=tree.layout.tests,
        expected=tuple(sorted([*failing, *near, *far])),
        timeout_s=TASK_TIMEOUT_S,
        origin=Origin(
            package=tree.source.name,
            version=tree.source.version,
            sha256=tree.source.sha256,
            licence=tree.source.licence,
            kind=mutation.kind,
            path=path,
            function=mutation.function,
            line=mutation.line,
            function_lines=mutation.function_lines,
            package_lines=sum(tree.files[module].count("\n") for module in tree.layout.modules),
            package_files=len(tree.layout.modules),
            covering_tests=len(covering),
            failing_tests=len(shown.failing),
        ),
    )


async def _holds(task: Task, failing: set[str], factory: SandboxFactory) -> bool:
    """Whether doing nothing fails in the tests that failed when they were recorded, and the gold patch passes."""
    gold = {path: text.encode() for path, text in task.gold.items()}
    for changed, value, wrong in (({}, 0.0, failing & set(task.expected)), (gold, 1.0, set[str]())):
        verdict = await grade_patiently(task, changed, factory, seed=1)
        if isinstance(verdict, Failure):
            if verdict.kind == "data":
                return False
            raise SandboxError(f"task {task.id} could not be graded: {verdict.cause}")
        if verdict.value != value or set(verdict.failed) != wrong or verdict.timed_out:
            return False
    return True
