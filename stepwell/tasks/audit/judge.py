"""Whether a task is good, from what was observed of it. Pure."""

from collections.abc import Sequence

from stepwell.tasks.audit.report import Observation


def why_dropped(gold: Sequence[Observation], nothing: Sequence[Observation], *, is_slow: bool = False) -> str | None:
    """The first reason why a task cannot be trusted; None if there is none.

    A task that is graded differently from one time to the next is flaky, whatever it was graded at first.

    Args:
        gold: Gradings of the gold patch.
        nothing: Gradings of the task as it is.
        is_slow: Whether the gold patch took longer than the task's deadline each time.
    """
    for what, seen in (("the gold patch", gold), ("doing nothing", nothing)):
        for observation in seen:
            if observation.failure is not None:
                return f"{what} could not be graded: {observation.failure}"
            if observation.timed_out:
                return f"{what} does not end"
        if any(observation != seen[0] for observation in seen):
            return f"flaky: {what} gave {_difference(seen)}"
    if gold[0].value != 1.0:
        return f"the gold patch does not pass: {_tests(gold[0])}"
    if nothing[0].value != 0.0:
        return "doing nothing passes"
    return "the gold patch takes longer than the task's deadline, each time" if is_slow else None


def _difference(seen: Sequence[Observation]) -> str:
    values = [observation.value for observation in seen]
    if len(set(values)) > 1:
        return f"{values} in turn"
    sometimes = {test for observation in seen for test in observation.not_passed.items()}
    always = set.intersection(*(set(observation.not_passed.items()) for observation in seen))
    return f"{values[0]} each time, by different tests: {sorted(test for test, _ in sometimes - always)[:3]}"


def _tests(observation: Observation) -> str:
    if not observation.not_passed:
        return "all tests pass, and a canary does too, or a test changed the tests"
    shown = [f"{test} {outcome}" for test, outcome in sorted(observation.not_passed.items())[:3]]
    return f"{len(observation.not_passed)} tests do not pass, such as {', '.join(shown)}"
