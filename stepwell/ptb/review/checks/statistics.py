"""Q6: how many runs there are, how far their means can be told apart, and where scores vary."""

from collections.abc import Mapping, Sequence
from statistics import fmean, variance

from stepwell.ptb.leaderboard import Row
from stepwell.ptb.leaderboard.statistics import ENOUGH
from stepwell.ptb.review.deciding import report
from stepwell.ptb.review.finding import Evidence, Finding
from stepwell.ptb.review.record import Trial
from stepwell.ptb.review.subject import Subject, short


def statistics(subject: Subject) -> Finding:
    """Q6."""
    rows = [(board.key, row) for board in subject.boards for row in (*board.rows, *board.ablations)]
    few = [row for _, row in rows if row.insufficient]
    told = [Evidence(says=_row(row), where=(short(key),)) for key, row in rows]
    told += _variation(subject.trials)
    label = "Unknown" if not rows else ("Insufficient" if few else "Sufficient")
    return report("Q6", f"{len(rows)} rows; {ENOUGH} runs of each are enough", label, told)


def _row(row: Row) -> str:
    score = row.score
    says = f"{row.configuration.agent}: n {score.n}, mean {score.mean:.2f}"
    if score.deviation is not None and score.low is not None and score.high is not None:
        error = score.deviation / score.n**0.5
        says += f", sd {score.deviation:.2f}, standard error {error:.2f}, 95 % {score.low:.2f} to {score.high:.2f}"
    if row.ranks is not None:
        low, high = row.ranks
        says += f", rank {low}" if low == high else f", ranks {low} to {high} are not excluded"
    return says + (", insufficient" if row.insufficient else "")


def _variation(trials: Sequence[Trial]) -> list[Evidence]:
    """Mean variance, in points squared, of a cell's score between runs, between decoding seeds of one submission, and
    by the choice of its items."""
    groups: dict[tuple[str, ...], list[Trial]] = {}
    for trial in trials:
        cell = trial.cell
        if cell.configuration is not None and cell.raw is not None:
            key = (cell.basis, cell.configuration.digest, cell.base_model, cell.benchmark)
            groups.setdefault(key, []).append(trial)
    between = [variance(_raw(group)) for group in groups.values() if len(group) > 1]
    seeds = [variance([one.points for one in each.cell.passes]) for each in trials if len(each.cell.passes) > 1]
    items = [found for each in trials if (found := _of_items(each)) is not None]
    parts: Mapping[str, Sequence[float]] = {
        "between runs": between,
        "between decoding seeds of one submission": seeds,
        "by the choice of items, of one pass": items,
    }
    return [
        Evidence(says=f"deviation of a cell {name}: {fmean(values) ** 0.5:.2f} points, from {len(values)} variances")
        if values
        else Evidence(says=f"not known: deviation of a cell {name}")
        for name, values in parts.items()
    ]


def _raw(trials: Sequence[Trial]) -> list[float]:
    return [each.cell.raw for each in trials if each.cell.raw is not None]


def _of_items(trial: Trial) -> float | None:
    """Variance of one pass's score if other items of the kind had been drawn, in points squared."""
    by_seed: dict[int, list[float]] = {}
    for each in trial.record.items or ():
        if each.worth is not None:
            by_seed.setdefault(each.seed, []).append(100 * each.worth)
    found = [variance(worths) / len(worths) for worths in by_seed.values() if len(worths) > 1]
    return fmean(found) if found else None
