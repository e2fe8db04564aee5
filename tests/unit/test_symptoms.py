"""From recorded calls to symptoms, and from symptoms to the issue text."""

import pytest

from stepwell.tasks.packages.issue import EXAMPLES, issue_text
from stepwell.tasks.packages.recording import RecordedCall, RecordedTest
from stepwell.tasks.packages.symptoms import Symptom, outcome_of, symptom_of, symptoms, written


def call(
    name: str = "pkg.mod:f",
    *arguments: str,
    result: str | None = "1",
    error: str | None = None,
    yields: tuple[str | None, ...] = (),
    bound: bool = False,
) -> RecordedCall:
    """A recorded call."""
    return RecordedCall(
        name=name,
        bound=bound,
        arguments=arguments,
        result=None if error else result,
        error=error,
        yields=yields,
        returned=error is None,
    )


def told(*calls: RecordedCall, passed: bool = True) -> RecordedTest:
    """A recorded test."""
    return RecordedTest(passed=passed, failed=not passed, calls=calls)


@pytest.mark.parametrize(
    ("recorded", "text"),
    [
        (call("m:f", "1", "x=2"), "f(1, x=2)"),
        (call("m:Box.__init__", "…", "3", bound=True), "Box(3)"),
        (call("m:Box.size", "Box(3)", "4", bound=True), "Box(3).size(4)"),
        (call("m:Box.size", "…", bound=True), "<Box>.size()"),
        (call("m:Box.__getitem__", "Box(3)", "'a'", bound=True), "Box(3)['a']"),
        (call("m:Box.__call__", "Box(3)", "1", bound=True), "Box(3)(1)"),
        (call("m:Box.make", "Box", "1", bound=True), "Box.make(1)"),
        (call("m:Box.of", "1"), "Box.of(1)"),
        (call("m:Box.__len__", "Box(3)", bound=True), "len(Box(3))"),
    ],
)
def test_calls_are_written_as_python(recorded: RecordedCall, text: str) -> None:
    assert written(recorded) == text


@pytest.mark.parametrize(
    ("recorded", "outcome"),
    [
        (call(result="[1]"), "returns `[1]`"),
        (call(error="KeyError: 1"), "raises `KeyError: 1`"),
        (call(result="list", yields=("1", "2")), "yields `[1, 2]`"),
        (call(result="list", yields=("1", None)), None),
        (call(result="list"), "yields `[]`"),
        (call(result=""), "raises nothing"),
        (call(result=None), None),
    ],
)
def test_outcomes_are_told_or_not_at_all(recorded: RecordedCall, outcome: str | None) -> None:
    assert outcome_of(recorded) == outcome


def test_the_symptom_is_the_first_call_that_went_otherwise() -> None:
    right = told(call("pkg.a:f", "1"), call("pkg.b:g", "2", result="3"), call("pkg.b:h", result="5"))
    wrong = told(call("pkg.a:f", "1"), call("pkg.b:g", "2", result="4"), call("pkg.b:h", result="6"), passed=False)
    assert symptom_of(right, wrong) == Symptom("g(2)", "pkg", "returns `3`", "returns `4`")


@pytest.mark.parametrize(
    "wrong",
    [
        told(call("pkg:f", "1"), passed=False),
        told(call("pkg:f", "2", result="7"), passed=False),
        told(call("pkg:f", "1", result=None), passed=False),
    ],
    ids=["no difference", "another call", "a result that cannot be shown"],
)
def test_what_shows_nothing_is_no_symptom(wrong: RecordedTest) -> None:
    assert symptom_of(told(call("pkg:f", "1")), wrong) is None


def test_an_exception_is_a_symptom_even_where_the_right_result_cannot_be_shown() -> None:
    found = symptom_of(told(call(result=None)), told(call(error="TypeError: no"), passed=False))
    assert found == Symptom("f()", "pkg", None, "raises `TypeError: no`")


def test_symptoms_come_from_failing_tests_once_each_and_the_clearest_first() -> None:
    right = {
        name: told(call("pkg:f", argument)) for name, argument in (("a", "1"), ("b", "1"), ("c", "…"), ("d", "22"))
    }
    wrong = {
        name: said.model_copy(
            update={"failed": name != "d", "calls": (said.calls[0].model_copy(update={"result": "2"}),)}
        )
        for name, said in right.items()
    }
    assert [symptom.call for symptom in symptoms(right, wrong)] == ["f(1)", "f(…)"]


@pytest.mark.parametrize("choice", range(12))
def test_the_issue_says_what_was_called_what_came_and_what_should_have(choice: int) -> None:
    seen = [Symptom(f"f({number})", "pkg", "returns `1`", f"returns `{number}`") for number in (2, 3, 4)]
    text = issue_text(seen, choice)
    assert "`f(2)` returns `2`. Expected: it returns `1`." in text
    assert "`f(3)`" in text
    assert "`f(4)`" not in text
    assert "`pkg`" in text
    assert EXAMPLES == 2


@pytest.mark.parametrize(
    ("symptom", "sentence"),
    [
        (Symptom("f()", "p", None, "raises `E`"), "`f()` raises `E`. It should not."),
        (Symptom("f()", "p", "raises `E`", None), "`f()` should be so that it raises `E`. It does not."),
        (Symptom("B()", "p", "raises nothing", "raises `E`"), "`B()` raises `E`. It should work."),
    ],
)
def test_what_cannot_be_shown_is_said_in_other_words(symptom: Symptom, sentence: str) -> None:
    assert sentence in issue_text([symptom], 0)
