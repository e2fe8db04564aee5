"""What checks look at: the record, joined."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stepwell.ptb.benchmarks.declared import BENCHMARKS
from stepwell.ptb.leaderboard import Basis, Board, NoBaseScore, Results, make_boards
from stepwell.ptb.review.record import ReviewRecord, Trial, trials_of
from stepwell.ptb.review.setup_record import SetupRecord


@dataclass(frozen=True)
class Subject:
    """What is under review."""

    record: ReviewRecord
    trials: Sequence[Trial]
    bases: Mapping[str, Basis]
    """By comparability key, those that agents have results under."""
    setups: Mapping[str, SetupRecord]
    """One for each of them, empty where nothing is known."""
    boards: Sequence[Board]
    no_boards: str | None
    """Why there are none."""

    def basis(self, trial: Trial) -> Basis:
        """Of its score."""
        return self.bases[trial.cell.basis]

    def setup(self, trial: Trial) -> SetupRecord:
        """Of its evaluation."""
        return self.setups[trial.cell.basis]

    def places(self) -> list[tuple[str, str, float]]:
        """Key, benchmark, and the share of all scores that stands on it."""
        shares: dict[tuple[str, str], float] = {}
        for trial in self.trials:
            place = (trial.cell.basis, trial.cell.benchmark)
            shares[place] = shares.get(place, 0.0) + trial.weight
        return [(key, benchmark, share) for (key, benchmark), share in sorted(shares.items())]


def subject_of(record: ReviewRecord) -> Subject:
    """The record, joined."""
    trials = trials_of(record)
    keys = sorted({each.cell.basis for each in trials})
    bases = {each.key: each for each in record.bases if each.key in keys}
    boards: Sequence[Board] = ()
    no_boards: str | None = None
    try:
        boards = make_boards(Results(bases, tuple(each for each in record.cells if each.basis in bases)))
    except NoBaseScore as error:
        no_boards = str(error)
    setups = {key: _setup(key, record.setups) for key in keys}
    return Subject(record, trials, bases, setups, boards, no_boards)


def needs_judge(benchmark: str) -> bool | None:
    """Whether a judge scores a benchmark's answers; None for one that is not declared here."""
    return BENCHMARKS[benchmark].needs == "judge" if benchmark in BENCHMARKS else None


def short(key: str) -> str:
    """A comparability key in words."""
    return f"key {key[:12]}"


def _setup(key: str, setups: Sequence[SetupRecord]) -> SetupRecord:
    """What is said of a key, and of all keys where nothing is said of it."""
    own = SetupRecord(basis=key)
    for wanted in (None, key):
        for each in setups:
            if each.basis == wanted:
                told = {name: getattr(each, name) for name in each.model_fields_set if getattr(each, name) is not None}
                own = own.model_copy(update={**told, "basis": key})
    return own
