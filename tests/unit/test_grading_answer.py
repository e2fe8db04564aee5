"""What a runner's channel says, read strictly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.tasks.grading.answer import Answer, Reported, read_answer

TESTS = ["t.py::test_a", "t.py::test_b"]
START = "n\tstart\t7:100 8:200"


def read(*lines: str) -> Answer:
    return read_answer("\n".join(lines).encode() + b"\n", "n", TESTS)


def test_an_answer_in_order_is_taken_as_it_is() -> None:
    answer = read("a warning before the start", START, "n\t1\tfailed\tt.py:3: x", "n\t0\tpassed\t", "n\tend")
    assert answer == Answer(
        started=True,
        placed=("7:100", "8:200"),
        ended=True,
        tests={"t.py::test_b": Reported("failed", "t.py:3: x"), "t.py::test_a": Reported("passed", "")},
    )
    assert [said.passed for said in answer.tests.values()] == [False, True]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ((START, "n\t0\tpassed\t", "n\t0\tpassed\t", "n\tend"), "reported twice"),
        ((START, "0\tpassed\t", "n\tend"), "no report"),
        ((START, "n\tend", "n\t0\tpassed\t"), "after its end"),
        ((START, "n\tend", "n\tend"), "after its end"),
        (("n\t0\tpassed\t", START, "n\tend"), "before the runner's start"),
        ((START, START, "n\tend"), "a report was no report"),
        ((START, "n\t9\tpassed\t", "n\tend"), "a report was no report"),
        ((START, "n\t0\tsplendid\t", "n\tend"), "a report was no report"),
        ((START, "[... 700 bytes left out ...]", "n\tend"), "more was written"),
    ],
)
def test_whatever_is_out_of_order_is_told(lines: tuple[str, ...], said: str) -> None:
    misconduct = read(*lines).misconduct
    assert misconduct is not None
    assert said in misconduct


def test_of_two_reports_of_a_test_the_first_stands() -> None:
    assert not read(START, "n\t0\tfailed\t", "n\t0\tpassed\t", "n\tend").tests["t.py::test_a"].passed


def test_why_the_sandbox_ended_the_command_is_no_misconduct() -> None:
    answer = read(START, "[killed: more than 64 processes]")
    assert (answer.killed, answer.misconduct, answer.ended) == ("more than 64 processes", None, False)


@given(st.binary(max_size=300))
def test_nothing_that_lacks_the_nonce_reports_anything(output: bytes) -> None:
    answer = read_answer(output, "0123456789abcdef", TESTS)
    assert (answer.started, answer.ended, answer.tests) == (False, False, {})
