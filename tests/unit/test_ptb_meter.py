"""Use and limits, read from what an agent writes."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from stepwell.ptb.supervisor.meter import LIMITS_KEPT, Meter, Use
from stepwell.ptb.supervisor.rules import LimitRule, Prices, UsageRule

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MESSAGES = UsageRule(
    pattern=r'"id":"(?P<id>\w+)".*"input_tokens":(?P<input>\d+),"output_tokens":(?P<output>\d+)', counts="each"
)
TOTAL = UsageRule(pattern=r"so far (?P<input>\d+) in (?P<cached>\d+) cached", counts="total")
COST = UsageRule(pattern=r'"total_cost_usd":(?P<cost>[0-9.]+)', counts="total")
EACH = UsageRule(pattern=r"turn (?P<output>\d+)", counts="each")


def read(meter: Meter, *lines: str) -> Use:
    """What was used after these lines."""
    for line in lines:
        meter.read(line, NOW)
    return meter.used()


def test_each_match_adds() -> None:
    assert read(Meter([EACH], [], None), "turn 3", "nothing", "turn 4") == Use(output=7)


def test_a_message_that_is_told_twice_counts_as_it_was_told_last() -> None:
    first = '{"id":"m1","usage":{"input_tokens":10,"output_tokens":1}}'
    again = '{"id":"m1","usage":{"input_tokens":10,"output_tokens":25}}'
    other = '{"id":"m2","usage":{"input_tokens":40,"output_tokens":5}}'
    assert read(Meter([MESSAGES], [], None), first, again, other) == Use(input=50, output=30)


def test_a_total_takes_the_place_of_the_one_before_and_begins_anew_with_a_prompt() -> None:
    meter = Meter([TOTAL], [], None)
    assert read(meter, "so far 100 in 10 cached", "so far 250 in 30 cached") == Use(input=250, cached=30)
    meter.begin_prompt()
    assert read(meter, "so far 7 in 0 cached") == Use(input=257, cached=30)


def test_rules_add_to_one_another() -> None:
    assert read(Meter([EACH, COST], [], None), "turn 3", '"total_cost_usd":0.25') == Use(output=3, cost=0.25)


def test_prices_give_the_cost_of_tokens() -> None:
    meter = Meter([TOTAL], [], Prices(input=3.0, output=15.0, cached=0.3))
    assert read(meter, "so far 1000000 in 1000000 cached").cost == pytest.approx(3.3)


@given(st.lists(st.integers(min_value=0, max_value=10**9)))
def test_tokens_are_the_sum_over_turns(turns: list[int]) -> None:
    assert read(Meter([EACH], [], None), *(f"turn {count}" for count in turns)).tokens == sum(turns)


def test_a_line_tells_or_does_not() -> None:
    meter = Meter([EACH], [LimitRule(kind="rate", pattern="429")], None)
    assert [meter.read(line, NOW) for line in ("turn 1", "HTTP 429", "else")] == [True, True, False]


def test_limits_are_kept_with_their_kind_and_what_was_around_them() -> None:
    rules = [LimitRule(kind="rate", pattern="rate_limit"), LimitRule(kind="credit", pattern="credit balance")]
    meter = Meter([], rules, None)
    read(meter, "x" * 5000 + " credit balance is too low " + "y" * 5000)
    (limit,) = meter.limits
    assert (limit.kind, limit.time) == ("credit", NOW)
    assert "credit balance is too low" in limit.text
    assert len(limit.text) < 500


def test_so_many_limits_are_kept_and_no_more() -> None:
    meter = Meter([], [LimitRule(kind="rate", pattern="again")], None)
    read(meter, *["again"] * (LIMITS_KEPT + 5))
    assert len(meter.limits) == LIMITS_KEPT


@pytest.mark.parametrize("pattern", [r"(?P<id>\w+)", r"(?P<tokens>\d+)", r"\d+", r"(?P<input>\d+"])
def test_a_rule_that_reads_nothing_is_refused(pattern: str) -> None:
    with pytest.raises(ValidationError):
        UsageRule(pattern=pattern, counts="each")


def test_a_limit_that_is_no_expression_is_refused() -> None:
    with pytest.raises(ValidationError, match="no regular expression"):
        LimitRule(kind="rate", pattern="(")
