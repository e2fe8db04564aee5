"""Our own scorers, put to the cases that a review asks for."""

from pathlib import Path

from stepwell.ptb.benchmarks import BENCHMARKS
from stepwell.ptb.review.checks.scorers import CASES
from stepwell.ptb.review.own_scorers import our_known_cases
from stepwell.sandbox.bubblewrap import BubblewrapFactory


async def test_our_scorers_pass_every_known_case_that_a_review_asks_for(tmp_path: Path) -> None:
    factory = BubblewrapFactory(tmp_path)
    try:
        found = await our_known_cases(tuple(BENCHMARKS), factory)
    finally:
        await factory.close()
    assert [(each.benchmark, each.case) for each in found if each.found != each.wanted] == []
    for benchmark, cases in CASES.items():
        told = [each for each in found if each.benchmark == benchmark]
        assert {each.case for each in told} >= set(cases)
        assert len({each.wanted for each in told}) > 1


async def test_of_a_benchmark_that_is_not_ours_nothing_is_said(tmp_path: Path) -> None:
    factory = BubblewrapFactory(tmp_path)
    try:
        assert await our_known_cases(("somebody's",), factory) == ()
    finally:
        await factory.close()
