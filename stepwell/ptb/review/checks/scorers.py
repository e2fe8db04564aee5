"""S1 and S2: scorers held against answers of which it is known what they are worth."""

from collections.abc import Mapping

from stepwell.ptb.benchmarks.declared import BENCHMARKS
from stepwell.ptb.review.deciding import Case, decide, fine, unknown, wrong
from stepwell.ptb.review.finding import Finding
from stepwell.ptb.review.setup_record import KnownAnswers, SetupRecord
from stepwell.ptb.review.subject import Subject

NUMBERS = ("711 for 11", "149 for 49", "13 for -3", "14000 for 14,000", "no number")
CALLS = ("arguments in another order", "a list for a tuple", "5.0 for 5", "two calls", "one argument too many")
PROGRAMS = ("exit status", "equals everything", "runs too long", "a right program")
CASES: Mapping[str, tuple[str, ...]] = {
    "aime2025": NUMBERS,
    "gsm8k": NUMBERS,
    "gpqamain": ("another letter", "two letters", "no letter"),
    "bfcl": CALLS,
    "humaneval": PROGRAMS,
    "healthbench": ("judge out of credit", "judge cannot be read", "empty answer"),
    "arenahardwriting": ("judge out of credit", "judge cannot be read", "empty answer"),
}
"""By benchmark, cases that its scorer must have been held against: each was got wrong by a published scorer, or is
the kind that would be."""
_FULL = 99.99
"""Points that gold answers must reach, but for rounding."""
_ROUNDING = 0.01
_ERRORS = 3.0
"""Standard errors that chance may lie off."""
_EVEN = 50.0
"""Points of a pair that a judge finds equal, which an answer that is always the same may get."""


def known_cases(subject: Subject) -> Finding:
    """S1."""
    cases = [case for key, name, share in subject.places() for case in _conformance(subject.setups[key], name, share)]
    count = sum(len(setup.conformance or ()) for setup in subject.setups.values())
    return decide("S1", f"{count} known cases for {len(subject.places())} benchmarks", cases)


def known_answers(subject: Subject) -> Finding:
    """S2."""
    cases = [case for key, name, share in subject.places() for case in _scored(subject.setups[key], name, share)]
    count = sum(len(setup.known_answers or ()) for setup in subject.setups.values())
    return decide("S2", f"{count} sets of known answers to {len(subject.places())} benchmarks", cases)


def chance_of(setup: SetupRecord, benchmark: str) -> float | None:
    """Score of answers that know nothing, 0 to 1; None if nobody says."""
    reference = (setup.references or {}).get(benchmark)
    if reference is not None and reference.chance is not None:
        return reference.chance
    return BENCHMARKS[benchmark].chance if benchmark in BENCHMARKS else None


def _conformance(setup: SetupRecord, benchmark: str, share: float) -> list[Case]:
    told = [each for each in setup.conformance or () if each.benchmark == benchmark]
    lacking = [case for case in CASES.get(benchmark, ()) if case not in {each.case for each in told}]
    cases = [unknown(benchmark, share, f"the case {case!r}") for case in lacking]
    if not told:
        cases.append(unknown(benchmark, share, "whether its scorer was held against known cases"))
    elif len({each.wanted for each in told}) < 2:
        cases.append(unknown(benchmark, share, "cases of which one is right and one is not"))
    for each in told:
        said = f"{each.case!r} is {each.wanted}, and its scorer says {each.found}"
        good = each.found == each.wanted
        cases.append(fine(benchmark, share) if good else wrong(benchmark, share, said))
    return cases


def _scored(setup: SetupRecord, benchmark: str, share: float) -> list[Case]:
    told = {each.answers: each for each in setup.known_answers or () if each.benchmark == benchmark}
    absent = [kind for kind in ("gold", "empty", "constant") if kind not in told]
    cases = [unknown(benchmark, share, f"the score of {kind} answers") for kind in absent]
    chance = chance_of(setup, benchmark)
    for each in told.values():
        if each.answers == "gold":
            good = each.points >= _FULL
            says = f"gold answers score {each.points:g}, not 100"
        elif chance is None:
            cases.append(unknown(benchmark, share, "the score of chance"))
            continue
        else:
            most = _most(each, benchmark, chance)
            good = each.points <= most
            says = f"{each.answers} answers score {each.points:g}, and at most {most:.1f} can be chance"
        cases.append(fine(benchmark, share) if good else wrong(benchmark, share, says))
    return cases


def _most(told: KnownAnswers, benchmark: str, chance: float) -> float:
    """Points up to which answers that know nothing may score."""
    if told.answers == "empty":
        return _ROUNDING
    if benchmark == "arenahardwriting":
        return _EVEN
    declared = BENCHMARKS.get(benchmark)
    error = (chance * (1 - chance) / declared.rows) ** 0.5 if declared else 0.0
    return 100 * (chance + _ERRORS * error) + _ROUNDING
