"""The sample of scored answers that people look at, and the share of the score that their errors come to."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell.ptb.review import Audited, ReviewRecord, Standing, review
from stepwell.ptb.review.record import trials_of
from stepwell.ptb.review.sample import FIRST, WIDENED, Sample, Unit, draw
from stepwell.ptb.review.trial_record import ItemOutcome
from tests.ptb_results import base_cells, basis, configuration, everywhere, run_cells
from tests.ptb_reviewed import record

ON = basis()


def items(count: int) -> tuple[ItemOutcome, ...]:
    """So many answers."""
    return tuple(ItemOutcome(item=f"i{number}", seed=1, worth=1.0, why="equal") for number in range(count))


def drawn(count: int, audited: tuple[Audited, ...] = ()) -> Sample:
    """The sample of one run with so many answers in each of its four cells."""
    cells = run_cells(ON, configuration(), "r0", everywhere(50.0))
    whole = ReviewRecord(bases=(ON,), cells=(*base_cells(ON), *cells), audited=audited)
    trials = trials_of(whole)
    known = [each.record.model_copy(update={"items": items(count)}) for each in trials]
    whole = whole.model_copy(update={"trials": tuple(known)})
    return draw(whole, trials_of(whole))


def looked_at(sample: Sample, wrong: set[str]) -> tuple[Audited, ...]:
    """All of the sample looked at, and these units found wrong."""
    return tuple(
        Audited(unit=each.id, score_is_right=each.id not in wrong, reason="read it", by="me") for each in sample.order
    )


def of(units: tuple[Unit, ...], benchmark: str) -> list[Unit]:
    """Those of a benchmark."""
    return [each for each in units if each.trial.cell.benchmark == benchmark]


@pytest.mark.parametrize(("count", "wanted"), [(5, 20), (12, 48), (13, 50), (100, 50)])
def test_all_answers_are_looked_at_up_to_fifty_and_fifty_of_more(count: int, wanted: int) -> None:
    sample = drawn(count)
    assert (sample.population, sample.wanted, len(sample.order)) == (4 * count, wanted, min(WIDENED, 4 * count))


def test_places_follow_the_share_of_the_score() -> None:
    sample = drawn(100)
    assert len(of(sample.units, "gsm8k")) == pytest.approx(0.75 * FIRST, abs=1)
    assert {each.stratum for each in sample.units} == set(sample.shares)


def test_the_same_record_gives_the_same_sample_whatever_its_order() -> None:
    first = drawn(30)
    turned = record()
    again = turned.model_copy(update={"trials": turned.trials[::-1], "cells": turned.cells[::-1]})
    assert [each.id for each in drawn(30).order] == [each.id for each in first.order]
    assert [each.id for each in draw(again, trials_of(again)).order] == [
        each.id for each in draw(turned, trials_of(turned)).order
    ]


def test_an_answer_that_is_scored_otherwise_is_another_to_look_at() -> None:
    sample = drawn(1)
    outcome = sample.order[0].outcome.model_copy(update={"worth": 0.0})
    trial = sample.order[0].trial
    rescored = trial.record.model_copy(update={"items": (outcome,)})
    whole = ReviewRecord(bases=(ON,), cells=(trial.cell,), trials=(rescored,))
    assert draw(whole, trials_of(whole)).order[0].id != sample.order[0].id


@pytest.mark.parametrize(("errors", "widened"), [(0, False), (6, False), (8, True), (12, True), (14, False)])
def test_the_sample_is_widened_where_the_first_leave_it_open(errors: int, widened: bool) -> None:
    sample = drawn(100)
    wrong = {each.id for each in of(sample.units, "gsm8k")[:errors]}
    judged = drawn(100, looked_at(sample, wrong))
    share = judged.error_share(FIRST)
    assert share == pytest.approx(0.02 * errors, abs=0.01)
    assert share is not None
    assert (0.15 <= share <= 0.25) == widened
    assert judged.wanted == (WIDENED if widened else FIRST)


def test_errors_weigh_what_their_benchmark_weighs() -> None:
    sample = drawn(100)
    wrong = {each.id for each in of(sample.units, "bfcl")}
    assert drawn(100, looked_at(sample, wrong)).error_share(FIRST) == pytest.approx(0.25)


@settings(deadline=None, max_examples=30)
@given(wrong=st.sets(st.integers(0, 49)))
def test_the_share_lies_between_none_and_all_and_is_the_mean_over_strata(wrong: set[int]) -> None:
    sample = drawn(25)
    ids = {sample.order[number].id for number in wrong}
    share = drawn(25, looked_at(sample, ids)).error_share(FIRST)
    by_stratum = 0.0
    for stratum, weight in sample.shares.items():
        own = [each.id for each in sample.order[:FIRST] if each.stratum == stratum]
        by_stratum += weight * len(ids.intersection(own)) / len(own)
    assert share == pytest.approx(by_stratum)
    assert 0 <= by_stratum <= 1 + 1e-9


def test_one_answer_that_nobody_could_tell_leaves_the_share_unknown() -> None:
    sample = drawn(13)
    found = list(looked_at(sample, set()))
    place = next(number for number, each in enumerate(found) if each.unit == sample.order[0].id)
    found[place] = Audited(unit=sample.order[0].id, score_is_right=None, reason="the gold answer is doubtful", by="me")
    judged = drawn(13, tuple(found))
    assert judged.error_share(judged.wanted) is None
    assert [each.id for each in judged.missing] == [sample.order[0].id]


@pytest.mark.parametrize(
    ("wrong", "looked", "standing", "says"),
    [
        (range(3), 50, Standing.PASS, "errors come to 6"),
        (range(30), 50, Standing.FLAGGED, "errors come to 60"),
        (range(8), 50, Standing.UNKNOWN, "whether 50 of its scores are right"),
        (range(8), 100, Standing.PASS, "errors come to 8"),
        ((), 49, Standing.UNKNOWN, "whether 1 of its scores are right"),
    ],
)
def test_the_finding_follows_the_share(wrong: range, looked: int, standing: Standing, says: str) -> None:
    found = review(record(wrong=tuple(wrong), looked_at=looked))
    (finding,) = (each for each in found.findings if each.id == "S3")
    assert finding.standing is standing
    assert any(says in each.says for each in finding.evidence), finding.evidence
