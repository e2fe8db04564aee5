"""What a leaderboard says; also its JSON."""

from pydantic import BaseModel, ConfigDict

from stepwell.ptb.leaderboard.filled import Penalty
from stepwell.ptb.leaderboard.records import Basis, Configuration, Status
from stepwell.ptb.leaderboard.statistics import Spread


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Part(_Strict):
    """A row's score on one base model, or on one benchmark."""

    score: Spread
    base: float
    """Points of the base model, or models."""
    gain: float
    """Points above them."""


class PlaceSaid(_Strict):
    """One cell of one run, in columns that are never mixed."""

    run_set: str
    base_model: str
    benchmark: str
    status: Status
    raw: float | None
    flags: tuple[str, ...]
    imputed: float | None
    counted: float | None
    max_tokens: int | None


class Row(_Strict):
    """One configuration."""

    configuration: Configuration
    rank: int | None
    """1 for the highest mean; None in a table of ablations."""
    ranks: tuple[int, int] | None
    """Ranks that the runs do not exclude: 1 + rows that are better, to all rows − rows that are worse."""
    tie_group: int | None
    """From 1; rows of one group are not told apart from the first of it."""
    score: Spread
    insufficient: bool
    """Fewer than five runs."""
    raw_score: float | None
    """Mean as scored, whatever was found, where there is a score; weights taken anew if a benchmark lacks all."""
    base: float
    gain: float
    by_base_model: dict[str, Part]
    by_benchmark: dict[str, Part]
    places: dict[Status, int]
    """How many of all runs' cells are clean, flagged, failed, missing: what the mean is a mixture of."""
    imputed_share: float
    """Of the score's weight, mean of the runs, 0 to 1."""
    under: dict[Penalty, float | None]
    """The mean if base points, nothing, or no place counts where there is no clean score."""
    rank_under: dict[Penalty, int | None]
    differs_from_basis: tuple[str, ...]
    """For an ablation, in what."""
    cells: tuple[PlaceSaid, ...]


class Waiting(_Strict):
    """A run that is left out until all its answers are scored."""

    agent: str
    configuration: str
    """Digest."""
    run_set: str
    cells: tuple[str, ...]
    """`base model on benchmark`."""


class Board(_Strict):
    """One table: everything in it has one comparability key."""

    key: str
    basis: Basis
    base: float
    """Weighted points of the base models."""
    base_from: str
    """Where the base models' points come from."""
    instruct: float | None
    """Weighted points of the instruct models, if all were scored on this basis."""
    few_shot: float | None
    rows: tuple[Row, ...]
    ablations: tuple[Row, ...]
    """Of another time or number of GPUs than the basis; not ranked."""
    waiting: tuple[Waiting, ...]
    warnings: tuple[str, ...]
