"""Q1, Q2, Q4, Q5, Q7 and Q8: told of every evaluation, and deciding nothing."""

from collections import Counter
from collections.abc import Sequence
from statistics import fmean, quantiles

from stepwell.ptb.leaderboard import Board, Row
from stepwell.ptb.leaderboard.filled import Penalty
from stepwell.ptb.review.checks.scorers import chance_of
from stepwell.ptb.review.deciding import BAR, report
from stepwell.ptb.review.finding import Evidence, Finding
from stepwell.ptb.review.record import Trial
from stepwell.ptb.review.subject import Subject, short

_ENDED_BY_BUDGET = ("time", "tokens", "money")
_UNREASONABLE = 0.8
"""Share of the score whose agents a budget ended, from which it is unreasonable."""


def resources(subject: Subject) -> Finding:
    """Q1."""
    ends = Counter(each.cell.ended or "not known" for each in subject.trials)
    by_budget = sum(each.weight for each in subject.trials if each.cell.ended in _ENDED_BY_BUDGET)
    label = "Sufficient"
    if ends["not known"]:
        label = "Unknown"
    elif by_budget >= BAR:
        label = "Unreasonable" if by_budget >= _UNREASONABLE else "Constraining"
    told = [Evidence(says=f"{count} ended by {_by(end)}") for end, count in sorted(ends.items())]
    used = [share for each in subject.trials if (share := _time_used(each)) is not None]
    if len(used) > 1:
        low, middle, high = quantiles(used, n=4, method="inclusive")
        told.append(
            Evidence(says=f"of its time a trial used {middle:.0%}, the middle half of them {low:.0%} to {high:.0%}")
        )
    return report("Q1", f"ends and times of {len(subject.trials)} trials", label, told, by_budget)


def scaffolds(subject: Subject) -> Finding:
    """Q2."""
    told: list[Evidence] = []
    labels: set[str] = set()
    vendors = {each.cell.configuration.digest: each.record.vendor for each in subject.trials if each.cell.configuration}
    for board in subject.boards:
        native = subject.setups[board.key].native_scaffolds
        used = {row.configuration.scaffold for row in board.rows}
        for row in (*board.rows, *board.ablations):
            of = row.configuration
            vendor = vendors.get(of.digest)
            label = "mixed"
            if len(used) == 1:
                label = "shared"
            elif native is None or (of.scaffold in native and vendor is None):
                label = "unknown"
            elif native.get(of.scaffold) == vendor:
                label = "native"
            labels.add(label)
            told.append(
                Evidence(says=f"{of.agent}: {of.scaffold} {of.scaffold_version}, {label}", where=(short(board.key),))
            )
    label = labels.pop() if len(labels) == 1 else ("mixed" if labels - {"unknown"} else "unknown")
    return report("Q2", f"{len(told)} rows", label.capitalize(), told)


def completability(subject: Subject) -> Finding:
    """Q4."""
    said = {key: setup.human for key, setup in subject.setups.items()}
    told = [
        Evidence(says="nobody says" if human is None else human.evidence, where=(short(key),))
        for key, human in said.items()
    ]
    established = bool(said) and all(human is not None and human.established for human in said.values())
    return report("Q4", "what is said of people", "Established" if established else "Not established", told)


def score_range(subject: Subject) -> Finding:
    """Q5."""
    told: list[Evidence] = []
    complete = bool(subject.boards)
    for board in subject.boards:
        where = (short(board.key),)
        ends = {"base": board.base, "few-shot base": board.few_shot, "instruct": board.instruct}
        known = [f"{name} {points:.2f}" for name, points in ends.items() if points is not None]
        lacking = [name for name, points in ends.items() if points is None]
        rows = [row.score.mean for row in (*board.rows, *board.ablations)]
        between = f"; agents {min(rows):.2f} to {max(rows):.2f}" if rows else ""
        told.append(Evidence(says=f"weighted points: {', '.join(known)}{between}", where=where))
        if lacking:
            complete = False
            told.append(Evidence(says=f"not known: {', '.join(lacking)}", where=where))
        told += _ends_of_benchmarks(subject, board)
    complete = complete and not any(each.says.startswith("not known") for each in told)
    return report("Q5", f"references of {len(subject.boards)} tables", "Known" if complete else "Partly known", told)


def _ends_of_benchmarks(subject: Subject, board: Board) -> list[Evidence]:
    setup = subject.setups[board.key]
    told: list[Evidence] = []
    for name in sorted(board.basis.weights):
        chance, reference = chance_of(setup, name), (setup.references or {}).get(name)
        if chance is None:
            told.append(Evidence(says="not known: the score of chance", where=(name,)))
        elif chance > 0:
            told.append(Evidence(says=f"chance scores {100 * chance:.1f}", where=(name,)))
        if reference is None or reference.ceiling is None:
            told.append(Evidence(says="not known: the ceiling", where=(name,)))
        else:
            says = f"ceiling {reference.ceiling:g} ({reference.ceiling_from or 'no reason is given'})"
            told.append(Evidence(says=says, where=(name,)))
    return told


def validity(subject: Subject) -> Finding:
    """Q7."""
    told: list[Evidence] = []
    for board in subject.boards:
        for row in board.rows:
            gains = ", ".join(f"{name} {part.gain:+.1f}" for name, part in row.by_benchmark.items())
            told.append(Evidence(says=f"{row.configuration.agent} gains over base: {gains}", where=(short(board.key),)))
    gaps = [
        each.record.own_score - each.cell.raw
        for each in subject.trials
        if each.record.own_score is not None and each.cell.raw is not None
    ]
    if gaps:
        told.append(
            Evidence(says=f"agents' own last measure less the score: {fmean(gaps):+.1f} points over {len(gaps)} trials")
        )
    elsewhere = [each for each in subject.trials if each.record.elsewhere]
    told += _elsewhere(elsewhere, subject)
    scored = [each for each in subject.trials if each.cell.raw is not None]
    lacking = [each.cell.trial for each in scored if not each.record.elsewhere or each.record.own_score is None]
    if lacking:
        says = "not known: scores on benchmarks that were not trained for, or the agent's own measure"
        told.append(Evidence(says=says, where=tuple(lacking)))
    label = "Measured" if scored and not lacking else ("Partly measured" if gaps or elsewhere else "Not measured")
    return report("Q7", f"{len(scored)} submitted models", label, told)


def _elsewhere(trials: Sequence[Trial], subject: Subject) -> list[Evidence]:
    """What submitted models do on other benchmarks, over base where that is known."""
    base = {
        (each.basis, each.base_model, each.benchmark): each.raw
        for each in subject.record.cells
        if each.role == "base" and each.raw is not None
    }
    changes: dict[str, list[float]] = {}
    for trial in trials:
        for name, points in sorted((trial.record.elsewhere or {}).items()):
            before = base.get((trial.cell.basis, trial.cell.base_model, name))
            if before is not None:
                changes.setdefault(name, []).append(points - before)
    return [
        Evidence(
            says=f"models that were trained for something else: {fmean(each):+.1f} points ({len(each)})", where=(name,)
        )
        for name, each in changes.items()
    ]


def mixtures(subject: Subject) -> Finding:
    """Q8."""
    rows = [(board, row) for board in subject.boards for row in (*board.rows, *board.ablations)]
    told = [Evidence(says=_mixture(row), where=(row.configuration.agent, short(board.key))) for board, row in rows]
    told += [
        Evidence(says=f"left out until scored: run-set {each.run_set}, {', '.join(each.cells)}", where=(each.agent,))
        for board in subject.boards
        for each in board.waiting
    ]
    imputed = max((row.imputed_share for _, row in rows), default=None)
    label = "Unknown"
    if imputed is not None:
        label = "Pure" if imputed == 0 else f"Up to {imputed:.0%} imputed"
    return report("Q8", f"cells behind {len(rows)} means", label, told, imputed)


def _mixture(row: Row) -> str:
    counts = ", ".join(f"{count} {status}" for status, count in row.places.items())
    under = [f"{'–' if (points := row.under[one]) is None else f'{points:.2f}'} {words}" for one, words in _PENALTIES]
    return f"{counts}; the mean is {', '.join(under)}"


_PENALTIES: Sequence[tuple[Penalty, str]] = (
    ("base", "with base scores for them"),
    ("zero", "with 0"),
    ("drop", "without them"),
)


def _by(end: str) -> str:
    return {"itself": "themselves", "crash": "a crash", "not known": "what is not known"}.get(end, f"their {end}")


def _time_used(trial: Trial) -> float | None:
    limits = trial.record.limits
    if trial.record.worked_s is None or limits is None or not isinstance(limits.hours, float | int):
        return None
    return trial.record.worked_s / (3600 * limits.hours)
