"""What an audit concludes from gradings, its digest, and the comparison of two machines."""

import re
from pathlib import Path

import pytest

from stepwell.tasks.audit import AuditedTask, AuditReport, Observation, compare
from stepwell.tasks.audit.judge import why_dropped
from stepwell.tasks.audit.machine import Machine, this_machine
from stepwell.tasks.audit.report import BrokenReport, read_report

PASSED = Observation(value=1.0)
FAILED = Observation(value=0.0, not_passed={"t::a": "failed"})
OTHER = Observation(value=0.0, not_passed={"t::b": "missing"})
BROKEN = Observation(value=None, failure="infra: no sandbox")
LATE = Observation(value=0.0, timed_out=True)


@pytest.mark.parametrize(
    ("gold", "nothing", "reason"),
    [
        ([PASSED] * 3, [FAILED] * 3, None),
        ([FAILED] * 3, [FAILED] * 3, "the gold patch does not pass: 1 tests do not pass, such as t::a failed"),
        ([PASSED] * 3, [PASSED] * 3, "doing nothing passes"),
        ([PASSED, FAILED, PASSED], [FAILED] * 3, r"flaky: the gold patch gave \[1.0, 0.0, 1.0\] in turn"),
        ([PASSED] * 3, [FAILED, OTHER, FAILED], r"flaky: doing nothing gave 0.0 each time.*'t::a', 't::b'"),
        ([PASSED, BROKEN, PASSED], [FAILED] * 3, "the gold patch could not be graded: infra: no sandbox"),
        ([PASSED] * 3, [LATE] * 3, "doing nothing does not end"),
        ([Observation(value=0.0)], [FAILED], "the gold patch does not pass: all tests pass"),
    ],
)
def test_a_task_is_dropped_with_the_reason(
    gold: list[Observation], nothing: list[Observation], reason: str | None
) -> None:
    found = why_dropped(gold, nothing)
    assert found is None if reason is None else re.match(reason, found or "")


def test_a_task_that_is_slow_each_time_is_dropped_but_a_worse_reason_comes_first() -> None:
    assert why_dropped([PASSED] * 3, [FAILED] * 3, is_slow=True) == (
        "the gold patch takes longer than the task's deadline, each time"
    )
    assert why_dropped([PASSED] * 3, [PASSED] * 3, is_slow=True) == "doing nothing passes"


def machine(architecture: str) -> Machine:
    """A machine."""
    return Machine(
        architecture=architecture, system="Linux 6", libc="glibc-2", python="CPython 3.11.7", libraries={}, cores=2
    )


def audited(name: str, nothing: Observation = FAILED, *, seconds: float = 1.0) -> AuditedTask:
    """A task, audited twice."""
    seen = (nothing, nothing)
    return AuditedTask(
        id=name,
        task=name * 4,
        gold=(PASSED, PASSED),
        nothing=seen,
        gold_s=(seconds, seconds),
        nothing_s=(seconds, seconds),
        dropped=why_dropped((PASSED, PASSED), seen),
    )


def report(*tasks: AuditedTask, architecture: str = "x86_64", grader: str = "g", repetitions: int = 2) -> AuditReport:
    """A report."""
    return AuditReport(machine=machine(architecture), grader=grader, repetitions=repetitions, tasks=tasks)


def test_the_digest_depends_on_results_and_tasks_not_on_time_order_or_machine() -> None:
    one = report(audited("a"), audited("b"))
    same = report(audited("b", seconds=9.0), audited("a", seconds=2.0), architecture="aarch64")
    assert one.digest == same.digest
    assert one.digest != report(audited("a"), audited("b", OTHER)).digest
    assert one.digest != report(audited("a")).digest
    assert one.set_digest != same.set_digest


def test_two_machines_keep_what_they_agree_on_and_the_rest_is_dropped_with_the_reason() -> None:
    first = report(audited("same"), audited("differs"), audited("here"), audited("bad", PASSED))
    second = report(
        audited("bad"), audited("there"), audited("same"), audited("differs", OTHER), architecture="aarch64"
    )
    found = compare(first, second)
    assert found.kept == ("same" * 4,)
    reasons = {dropped.id: dropped.reason for dropped in found.dropped}
    assert list(reasons) == ["differs", "here", "bad", "there"]
    assert "differ in ['t::a', 't::b']" in reasons["differs"]
    assert reasons["here"] == "only one report has it; that of aarch64, CPython 3.11.7 has not"
    assert reasons["there"] == "only one report has it; that of x86_64, CPython 3.11.7 has not"
    assert reasons["bad"] == "dropped on x86_64, CPython 3.11.7: doing nothing passes"


@pytest.mark.parametrize(("other", "said"), [({"grader": "h"}, "two graders"), ({"repetitions": 3}, "2 repetitions")])
def test_reports_made_in_two_ways_are_not_compared(other: dict[str, str | int], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        compare(report(audited("a")), report(audited("a")).model_copy(update=other))


def test_a_report_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    made = report(audited("a"))
    file.write_text(made.model_dump_json(indent=1))
    assert read_report(file) == made
    file.write_text('{"machine": 1}')
    with pytest.raises(BrokenReport, match=r"is no report.*at machine"):
        read_report(file)
    with pytest.raises(BrokenReport, match="cannot be read"):
        read_report(tmp_path / "nowhere")


def test_this_machine_says_what_a_result_can_depend_on() -> None:
    found = this_machine()
    assert found.architecture
    assert found.python.startswith("CPython 3.")
    assert found.libraries.keys() >= {"pytest", "pluggy"}
