"""S4 to S6: answers that were not scored, judges of answers, templates and budgets, and what stands beside a score."""

from stepwell.ptb.review.deciding import BAR, Case, decide, fine, noted, unknown, wrong
from stepwell.ptb.review.finding import Finding
from stepwell.ptb.review.record import Trial
from stepwell.ptb.review.setup_record import Calibration
from stepwell.ptb.review.subject import Subject, needs_judge, short


def judges_of_answers(subject: Subject) -> Finding:
    """S4."""
    scored = [each for each in subject.trials if each.cell.failure is None]
    cases = [_passes(each) for each in scored]
    for key, benchmark, share in subject.places():
        judge = subject.bases[key].judge
        judged = needs_judge(benchmark)
        if judged is False or (judged is None and judge is None):
            continue
        told = [each for each in subject.setups[key].calibration or () if each.judge == judge]
        if not told:
            cases.append(unknown(benchmark, share, f"how {judge} does on known cases"))
        cases += [_calibrated(each, benchmark, share) for each in told]
    judges = sorted({basis.judge for basis in subject.bases.values() if basis.judge is not None})
    looked_at = f"passes of {len(scored)} trials; judges of answers: {', '.join(judges) or 'none'}"
    return decide("S4", looked_at, cases)


def templates(subject: Subject) -> Finding:
    """S5."""
    scored = [each for each in subject.trials if each.cell.raw is not None]
    cases = [_template(each, subject) for each in scored]
    cases += [
        unknown(each.cell.trial, each.weight, "the limit of tokens that its answers were scored under")
        for each in scored
        if each.cell.max_tokens is None
    ]
    cases += [noted(short(board.key), warning) for board in subject.boards for warning in board.warnings]
    return decide("S5", f"template and limit of tokens of {len(scored)} scored trials", cases)


def columns(subject: Subject) -> Finding:
    """S6. The form of results holds raw score, flags and imputed score apart; the rest is what must be known."""
    cases: list[Case] = []
    for trial in subject.trials:
        cell = trial.cell
        if cell.ended is None:
            cases.append(unknown(cell.trial, trial.weight, "what ended it"))
        else:
            cases.append(fine(cell.trial, trial.weight))
    if subject.no_boards is not None:
        cases.append(unknown("the leaderboard", 1.0, subject.no_boards))
    for board in subject.boards:
        for row in (*board.rows, *board.ablations):
            raw = "–" if row.raw_score is None else f"{row.raw_score:.2f}"
            says = f"{row.score.mean:.2f} as counted, {raw} as scored, {row.imputed_share:.1%} of the weight imputed"
            cases.append(noted(row.configuration.agent, says))
    return decide("S6", f"{len(subject.trials)} cells and {len(subject.boards)} tables", cases)


def _passes(trial: Trial) -> Case:
    name, weight, passes = trial.cell.trial, trial.weight, trial.record.passes
    if not passes:
        return unknown(name, weight, "items expected and scored in each pass")
    lost = sum(each.expected - each.scored for each in passes)
    if trial.cell.raw is not None and lost > 0:
        return wrong(name, weight, f"{lost} answers are left out of its score, and not told")
    if trial.cell.raw is not None and any(each.judge_errors for each in passes):
        return wrong(name, weight, "judgements failed, and it has a score")
    if needs_judge(trial.cell.benchmark) and any(each.judge_errors is None for each in passes):
        return unknown(name, weight, "judgements that failed")
    return fine(name, weight)


def _calibrated(told: Calibration, benchmark: str, share: float) -> Case:
    swaps = f"; {told.swaps_agreed} of {told.swaps} pairs alike when turned" if told.swaps else ""
    says = f"{told.judge} agrees with {told.agreed} of {told.cases} known cases, {told.errors} failed{swaps}"
    if not told.cases:
        return unknown(benchmark, share, f"how {told.judge} does on known cases")
    sound = told.agreed / told.cases >= 1 - BAR and not told.errors
    return fine(benchmark, share, says) if sound else wrong(benchmark, share, says)


def _template(trial: Trial, subject: Subject) -> Case:
    name, weight, told = trial.cell.trial, trial.weight, trial.record.scored_with
    if told is None or told.template_by is None or told.template is None:
        return unknown(name, weight, "its template, and what it was chosen by")
    if told.template_by != "base model":
        return wrong(name, weight, f"its template was chosen by the {told.template_by}")
    if told.template != subject.basis(trial).templates[trial.cell.base_model]:
        return wrong(name, weight, "its template is another than its base model's")
    return fine(name, weight)
