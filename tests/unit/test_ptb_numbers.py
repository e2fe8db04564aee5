"""Exact equality of numbers, and multiple choice, in answers."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.ptb.item import ChoiceGold, NumberGold
from stepwell.ptb.scorers.choices import score_choice
from stepwell.ptb.scorers.numbers import number_of, numbers_in, score_number


@pytest.mark.parametrize(
    ("answer", "gold", "right"),
    [
        # What matching by the end of the text gets wrong.
        ("ANSWER: 711", 11, False),
        ("ANSWER: 149", 49, False),
        ("ANSWER: 11", 711, False),
        ("ANSWER: 13", -3, False),
        ("ANSWER: 3", -3, False),
        ("ANSWER: -3", -3, True),
        ("ANSWER: −3", -3, True),
        ("ANSWER: -$3", -3, True),
        ("ANSWER: 14,000", 14000, True),
        ("ANSWER: 14000", 14000, True),
        (r"ANSWER: 14{,}000", 14000, True),
        (r"ANSWER: 14\,000", 14000, True),
        ("ANSWER: $14,000.00", 14000, True),
        ("ANSWER: 4,000", 14000, False),
        ("ANSWER: 1,4", 14, False),
        ("ANSWER: 18.0", 18, True),
        ("ANSWER: 18.", 18, True),
        ("ANSWER: 18.5", 18, False),
        ("ANSWER: 0.999999999999999999999", 1, False),
        ("ANSWER: 1e3", 1000, True),
        ("ANSWER: 70", 70, True),
        ("**ANSWER:** **70**", 70, True),
        (r"Final answer: $\boxed{70}$", 70, True),
        (r"Answer: $\boxed{-3}$", -3, True),
        ("ANSWER:\n\n70", 70, True),
        ("ANSWER: 70 km/h", 70, True),
        ("ANSWER: 1\nNo.\nANSWER: 70", 70, True),
        # Naming many numbers answers nothing.
        ("ANSWER: 3 or 70", 70, False),
        ("ANSWER: 1 2 3 4 5 6 7 70", 70, False),
        ("ANSWER: 10-3", -3, False),
        # Without an answer line the last number decides.
        ("So there are 5 and then 70 in all.", 70, True),
        ("So there are 70, not 5.", 70, False),
        # Nothing that raises, and nothing that passes.
        ("", 0, False),
        ("ANSWER:", 0, False),
        ("ANSWER: ½½", 0, False),
        ("ANSWER: 1/0", 0, False),
        ("ANSWER: 1e999999999", 0, False),
        ("ANSWER: " + "9" * 5000, 0, False),
        ("ANSWER: ٧٠", 70, False),
        ("ANSWER: NaN", 0, False),
    ],
)
def test_a_number_is_right_only_if_it_is_the_number(answer: str, gold: int, right: bool) -> None:
    scored = score_number(answer, NumberGold(Fraction(gold)))
    assert scored.value == float(right), scored.why


@given(st.integers(min_value=-(10**9), max_value=10**9), st.integers(min_value=-(10**9), max_value=10**9))
def test_two_numbers_are_equal_in_any_writing_or_in_none(found: int, gold: int) -> None:
    for written in (f"{found}", f"{found:,}", f"{found}.0"):
        scored = score_number(f"Thinking of {gold}.\nANSWER: {written}", NumberGold(Fraction(gold)))
        assert scored.value == float(found == gold)


@given(st.text())
def test_no_text_breaks_the_reading_of_numbers(text: str) -> None:
    assert all(isinstance(one, Fraction) for one in numbers_in(text))
    assert score_number(text, NumberGold(Fraction(3, 7))).value in (0.0, 1.0)


@pytest.mark.parametrize(
    ("text", "value"), [("-3", -3), ("14,000", 14000), ("70.0", 70), ("7 apples", None), ("", None)]
)
def test_a_gold_answer_is_a_number_and_nothing_else(text: str, value: int | None) -> None:
    assert number_of(text) == value


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("It is so.\nANSWER: B", 1.0),
        ("ANSWER: b", 1.0),
        ("**ANSWER: (B)**", 1.0),
        (r"Answer: $\boxed{B}$", 1.0),
        ("ANSWER: B) forty two", 1.0),
        ("ANSWER: A\nWait.\nANSWER: B", 1.0),
        ("ANSWER: A", 0.0),
        ("ANSWER: A, B", 0.0),
        ("ANSWER: B or C", 0.0),
        ("ANSWER: BCD", 0.0),
        ("ANSWER: E", 0.0),
        ("ANSWER: $LETTER", 0.0),
        ("ANSWER:", 0.0),
        ("B", 0.0),
        ("", 0.0),
    ],
)
def test_a_choice_is_one_letter_on_the_last_answer_line(answer: str, value: float) -> None:
    assert score_choice(answer, ChoiceGold("B", "ABCD")).value == value


@given(st.text())
def test_no_text_breaks_the_reading_of_a_choice(text: str) -> None:
    assert score_choice(text, ChoiceGold("B", "ABCD")).value in (0.0, 1.0)
