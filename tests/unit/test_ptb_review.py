"""The review rubric: what passes, what is flagged, what is not known, and what follows."""

from collections.abc import Callable

import pytest

from stepwell.ptb.leaderboard import Cell
from stepwell.ptb.leaderboard.records import Flag
from stepwell.ptb.review import Finding, Review, SetupRecord, Standing, TrialRecord, Verdict, review
from stepwell.ptb.review.checks.reviewability import VITAL, WHAT_HAPPENED, WHAT_WAS_RUN
from stepwell.ptb.review.criteria import CRITERIA
from stepwell.ptb.review.finding import Group
from stepwell.ptb.review.trial_record import Interruption
from tests.ptb_reviewed import cells, record, setup, trial

DECIDING = [one.id for one in CRITERIA.values() if one.group not in (Group.REVIEWABILITY, Group.QUALITY)]
SpoilTrial = Callable[[TrialRecord], TrialRecord]


def of(found: Review, identity: str) -> Finding:
    """One finding."""
    (finding,) = (each for each in found.findings if each.id == identity)
    return finding


def changed(**fields: object) -> SpoilTrial:
    """Changes every trial's record."""
    return lambda one: TrialRecord.model_validate({**one.model_dump(), **fields})


def only(name: str, change: SpoilTrial) -> SpoilTrial:
    """Changes the records of trials whose names have this part."""
    return lambda one: change(one) if name in one.trial else one


def test_a_record_of_which_all_is_known_and_right_is_verified() -> None:
    found = review(record())
    assert (found.verdict, found.reviewability, found.trials) == (Verdict.VERIFIED, "Full", 40)
    assert [each.id for each in found.findings] == list(CRITERIA)
    assert {each.standing for each in found.findings} == {Standing.PASS, Standing.REPORTED}
    assert all(each.looked_at and each.evidence and each.would_change for each in found.findings)


def test_of_results_alone_no_check_passes_but_the_one_that_they_answer() -> None:
    found = review(record(setups=[], change_trial=lambda one: TrialRecord(trial=one.trial), looked_at=0))
    assert (found.verdict, found.reviewability) == (Verdict.NEI, "Inadequate")
    assert [each.id for each in found.findings if each.standing is Standing.PASS] == ["S6"]
    assert of(found, "S6").evidence[-1].says == "40 of 40 are as they should be"


def test_no_field_that_is_left_out_leaves_a_full_review() -> None:
    """Each field of a trial's record, taken away from one trial, is missed by a check, but for measures that only
    checks use which decide nothing, and for scoring again, of which one trial of a key is enough."""
    whole = trial(cells()[0])
    unused = {"kind", "trial", "own_score", "elsewhere", "worked_s", "rescored_equal"}
    for name in whole.model_fields_set - unused:
        found = review(record(change_trial=only("alpha/r0/lab/one-base/gsm8k", changed(**{name: None}))))
        missed = [each.id for each in found.findings if each.standing is Standing.UNKNOWN or "incomplete" in each.label]
        assert missed, name


@pytest.mark.parametrize(
    ("name", "checks"),
    [
        ("scoring_code", {"R3"}),
        ("test_data", {"R3"}),
        ("rescore_command", {"R3"}),
        ("conformance", {"S1"}),
        ("known_answers", {"S2"}),
        ("required", {"C2"}),
        ("planned_runs", {"B3"}),
        ("rename_test", {"B2"}),
    ],
)
def test_what_is_not_known_of_the_evaluation_passes_nothing(name: str, checks: set[str]) -> None:
    found = review(record(setups=[setup(**{name: None})]))
    assert {each.id for each in found.findings if each.standing in (Standing.UNKNOWN, Standing.FLAGGED)} == checks
    assert found.verdict is Verdict.NEI or checks == {"R3"}


@pytest.mark.parametrize("field", sorted(WHAT_WAS_RUN.keys() | WHAT_HAPPENED.keys()))
def test_reviewability_is_full_only_with_every_field_and_inadequate_without_a_vital_one(field: str) -> None:
    name, _, inner = field.partition(".")
    whole = trial(cells()[0])
    value = None if not inner else {**getattr(whole, name).model_dump(), inner: None}
    found = review(record(change_trial=changed(**{name: value})))
    assert found.reviewability == ("Inadequate" if field in VITAL else "Partial")
    one = review(record(change_trial=only("alpha/r0/lab/one-base/bfcl", changed(**{name: value}))))
    assert one.reviewability == "Partial"


def test_a_secret_that_outlived_redaction_stops_the_review() -> None:
    spoil = only("beta/r3/lab/two-base/bfcl", changed(secrets={"redacted": 1, "survivors": 1}))
    found = review(record(change_trial=spoil))
    assert (found.verdict, of(found, "R2").label) == (Verdict.NEI, "Inadequate")
    assert of(found, "R2").evidence[0].where == ("beta/r3/lab/two-base/bfcl",)


@pytest.mark.parametrize(
    ("mode", "claims", "contradicts"), [("none", "open", True), ("deny", "open", True), ("deny", "deny", False)]
)
def test_a_prompt_that_says_the_internet_is_open_where_it_is_not_is_told(
    mode: str, claims: str, contradicts: bool
) -> None:
    statement = {"about": "internet", "says": "Internet access is unrestricted.", "claims": claims, "holds": True}
    spoil = changed(network={"mode": mode, "hosts": ("example.org",), "log": "l"}, statements=(statement,))
    finding = of(review(record(change_trial=spoil)), "R4")
    assert (finding.label, finding.standing is Standing.FLAGGED) == (
        ("Partial", True) if contradicts else ("Full", False)
    )


def test_scoring_again_that_gives_something_else_stops_the_review() -> None:
    found = review(record(change_trial=only("alpha/r1/lab/one-base/gsm8k", changed(rescored_equal=False))))
    assert (found.verdict, of(found, "R3").label) == (Verdict.NEI, "Inadequate")


INTERRUPTED = (Interruption(kind="credit", says="no credit after 2 hours", made_good=False),)
SPOILT: list[tuple[str, str, SpoilTrial]] = [
    ("S4", "gsm8k", changed(passes=({"seed": 1, "expected": 4, "scored": 3, "judge_errors": 0},))),
    ("S5", "gsm8k", lambda one: _with_template(one, template_by="path")),
    ("S5", "gsm8k", lambda one: _with_template(one, template="another")),
    ("C1", "gsm8k", lambda one: _with_template(one, scorer="number-0")),
    ("C1", "alpha", changed(rules="v1.0")),
    ("C2", "alpha/r0/lab/one-base/bfcl", changed(votes=())),
    ("E1", "alpha", changed(interruptions=INTERRUPTED)),
    ("E1", "alpha", changed(retry_policy="until it works")),
    ("E2", "alpha", changed(self_test={"passed": False, "before_the_clock": True, "looked_at": ("GPU",)})),
    ("E2", "alpha", changed(self_test={"passed": True, "before_the_clock": False, "looked_at": ("GPU",)})),
    ("E3", "alpha/r0", changed(effort="high")),
    ("E4", "gsm8k", changed(model_loads=False)),
    ("B1", "alpha", changed(prompt_shared="another")),
    ("B2", "alpha", changed(vendor="another")),
    ("B2", "alpha", changed(keys=("FIRST", "SECOND"))),
    ("B3", "alpha", changed(hardware={"description": "a larger GPU", "checked": True})),
]


def _with_template(one: TrialRecord, **fields: object) -> TrialRecord:
    assert one.scored_with is not None
    return changed(scored_with={**one.scored_with.model_dump(), **fields})(one)


@pytest.mark.parametrize(("check", "where", "spoil"), SPOILT)
def test_what_is_wrong_in_a_fifth_of_the_score_is_a_flaw_and_the_evidence_names_the_trials(
    check: str, where: str, spoil: SpoilTrial
) -> None:
    found = review(record(change_trial=only(where, spoil)))
    finding = of(found, check)
    assert (found.verdict, finding.standing) == (Verdict.FLAWED, Standing.FLAGGED)
    assert finding.share
    named = [name for each in finding.evidence for name in each.where]
    assert any(where in name for name in named)
    assert any(reason.startswith(f"{check}: ") for reason in found.because)


def test_what_is_wrong_in_less_than_a_fifth_passes_and_is_told() -> None:
    spoil = only("alpha/r0/lab/one-base/gsm8k", lambda one: _with_template(one, template_by="path"))
    found = review(record(change_trial=spoil))
    finding = of(found, "S5")
    assert (found.verdict, finding.standing) == (Verdict.VERIFIED, Standing.PASS)
    assert finding.share == pytest.approx(0.75 / 2 / 10)
    assert finding.evidence[0].says == "its template was chosen by the path"


def test_a_judge_of_the_agents_own_vendor_passes_if_it_was_compared_with_another() -> None:
    compared = {"judges": ("j", "k"), "vendors": ("another", "a third"), "cases": 40, "agreed": 38}
    found = review(record(change_trial=changed(vendor="another"), setups=[setup(judge_agreement=(compared,))]))
    assert of(found, "B2").standing is Standing.PASS


def test_a_violation_that_is_not_flagged_is_a_flaw_and_a_flagged_one_is_none() -> None:
    name = "alpha/r0/lab/one-base/bfcl"
    vote = {"charge": "lookup", "judges": ("j",) * 3, "vendors": ("another",) * 3, "votes": (True,) * 3}
    spoil = only(name, changed(votes=({**vote, "ruling": "violation"},)))
    assert of(review(record(change_trial=spoil)), "C2").standing is Standing.FLAGGED

    def flag(of_agents: list[Cell]) -> list[Cell]:
        flags = (Flag(check="lookup", reason="read the leaderboard"),)
        return [each.model_copy(update={"flags": flags}) if each.trial == name else each for each in of_agents]

    found = review(record(change_trial=spoil, change_cells=flag))
    assert of(found, "C2").standing is Standing.PASS
    assert of(found, "Q8").label == "Up to 2% imputed"
    assert "1 of 40 flagged" in of(found, "Q3").label


def test_a_row_with_fewer_runs_than_were_planned_is_a_flaw() -> None:
    found = review(record(change_cells=lambda all_of: [each for each in all_of if "alpha/r4" not in each.trial]))
    assert of(found, "B3").standing is Standing.FLAGGED
    assert of(found, "B3").evidence[0].says == "alpha has 4 runs, 5 were planned"
    assert of(found, "Q6").label == "Insufficient"


def test_a_scorer_that_gets_a_known_case_wrong_is_a_flaw_where_its_benchmark_weighs_enough() -> None:
    told = [each.model_dump() for each in setup().conformance or ()]
    for each in told:
        each["found"] = "right" if each["case"] == "711 for 11" else each["found"]
    wrong = [{**each, "found": "right"} if each["case"] == "149 for 49" else each for each in told]
    found = review(record(setups=[setup(conformance=wrong)]))
    assert (found.verdict, of(found, "S1").share) == (Verdict.FLAWED, pytest.approx(0.75))


@pytest.mark.parametrize(("answers", "points"), [("gold", 98.0), ("empty", 5.0), ("constant", 12.0)])
def test_known_answers_that_score_otherwise_are_a_flaw(answers: str, points: float) -> None:
    told = [each.model_dump() for each in setup().known_answers or ()]
    told = [
        {**each, "points": points} if (each["benchmark"], each["answers"]) == ("gsm8k", answers) else each
        for each in told
    ]
    assert of(review(record(setups=[setup(known_answers=told)])), "S2").standing is Standing.FLAGGED


def test_what_is_said_of_one_key_stands_before_what_is_said_of_all() -> None:
    key = record().bases[0].key
    general, own = setup(planned_runs=3), SetupRecord(basis=key, planned_runs=5)
    assert of(review(record(setups=[own, general])), "B3").standing is Standing.PASS
    assert of(review(record(setups=[general])), "B3").standing is Standing.FLAGGED


@pytest.mark.parametrize(
    ("ends", "label"),
    [
        ({}, "Sufficient"),
        ({"alpha": "time"}, "Constraining"),
        ({"alpha": "time", "beta": "tokens"}, "Unreasonable"),
        ({"alpha": None}, "Unknown"),
    ],
)
def test_resources_are_named_by_what_ended_the_trials(ends: dict[str, str | None], label: str) -> None:
    def end(of_agents: list[Cell]) -> list[Cell]:
        return [each.model_copy(update={"ended": ends.get(each.trial.split("/")[0], each.ended)}) for each in of_agents]

    assert of(review(record(change_cells=end)), "Q1").label == label


def test_without_base_scores_the_columns_cannot_be_told() -> None:
    whole = record()
    without = whole.model_copy(update={"cells": tuple(each for each in whole.cells if each.role == "agent")})
    found = review(without)
    assert of(found, "S6").standing is Standing.UNKNOWN
    assert (of(found, "Q6").label, of(found, "Q8").label) == ("Unknown", "Unknown")
