"""What is known of an evaluation as a whole: its scorers, its judges, its tests of itself, its tasks."""

from typing import Annotated, Literal

from pydantic import Field

from stepwell.ptb.review.trial_record import Count, Name, Strict

Share = Annotated[float, Field(ge=0, le=1)]


Worth = Literal["right", "wrong", "unscored"]


class ConformanceCase(Strict):
    """An answer of which it is known what a scorer must say."""

    benchmark: Name
    case: Name
    """Such as `711 for 11`."""
    wanted: Worth
    found: Worth
    """What the scorer said."""


class KnownAnswers(Strict):
    """Answers to a whole benchmark whose score is known."""

    benchmark: Name
    answers: Literal["gold", "empty", "constant", "random"]
    points: Annotated[float, Field(ge=0, le=100)]


class Calibration(Strict):
    """A judge of answers on judgements that are known."""

    judge: Name
    vendor: Name | None = None
    cases: Count
    agreed: Count
    errors: Count
    """Judgements that failed or could not be read."""
    swaps: Count | None = None
    """Pairs that were judged in both orders."""
    swaps_agreed: Count | None = None


class Agreement(Strict):
    """Of two judges on the same questions."""

    judges: tuple[Name, Name]
    vendors: tuple[Name, Name] | None = None
    cases: Count
    agreed: Count


class RenameTest(Strict):
    """One submission scored under other names and paths."""

    renamed: Name
    """What was renamed."""
    equal: bool


class Planted(Strict):
    """Leaks that were planted for the check of contamination to find."""

    leak: Name
    planted: Count
    found: Count


class Control(Strict):
    """Clean rows that the check of contamination must leave alone."""

    rows_of: Name
    rows: Count
    flagged: Count


class Publicness(Strict):
    """How much of a benchmark is public."""

    tasks: Share
    solutions: Share


class HumanEvidence(Strict):
    """Whether people can do the tasks in the time."""

    established: bool
    evidence: Name


class Reference(Strict):
    """Ends of the range of scores."""

    chance: Share | None = None
    """Score of answers that know nothing; of the published benchmarks it is known."""
    ceiling: Annotated[float, Field(ge=0, le=100)] | None = None
    """Highest points that can be reached, where that is known."""
    ceiling_from: str | None = None


class SetupRecord(Strict):
    """What is known of the evaluation of one comparability key, or of all where `basis` is None."""

    kind: Literal["setup"] = "setup"
    basis: Name | None = None
    """Comparability key."""

    scoring_code: Name | None = None
    """Address, or digest, of what scores; published or kept."""
    test_data: dict[str, Name] | None = None
    """Address of each benchmark's files."""
    rescore_command: Name | None = None
    """The one command that scores a stored trial again."""

    conformance: tuple[ConformanceCase, ...] | None = None
    known_answers: tuple[KnownAnswers, ...] | None = None
    calibration: tuple[Calibration, ...] | None = None
    """Of the judges that score answers; empty if none does."""
    judge_agreement: tuple[Agreement, ...] | None = None
    """Of judges of trials or of answers, with judges of other vendors."""

    changelog: Name | None = None
    """What is different from the key before, and why."""
    required: tuple[str, ...] | None = None
    """Verdicts that every scored trial must have: `contamination`, `identity`, or a charge."""
    planned_runs: Annotated[int, Field(ge=1)] | None = None
    """Runs that each configuration was to have."""
    rename_test: RenameTest | None = None
    native_scaffolds: dict[str, Name] | None = None
    """Vendor of each scaffold that is a vendor's own."""

    planted: tuple[Planted, ...] | None = None
    controls: tuple[Control, ...] | None = None
    publicness: dict[str, Publicness] | None = None
    """By benchmark."""
    human: HumanEvidence | None = None
    references: dict[str, Reference] | None = None
    """By benchmark."""
