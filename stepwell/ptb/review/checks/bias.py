"""B1 to B3: that no agent was told, judged or given otherwise than another."""

from collections.abc import Iterator, Sequence

from stepwell.ptb.review.deciding import Case, decide, fine, noted, unknown, wrong
from stepwell.ptb.review.finding import Finding
from stepwell.ptb.review.record import Trial
from stepwell.ptb.review.subject import Subject, short


def bias(subject: Subject) -> list[Finding]:
    """B1 to B3."""
    return [_prompts(subject), _judges(subject), _means(subject)]


def _prompts(subject: Subject) -> Finding:
    tasks: dict[tuple[str, str, str], list[Trial]] = {}
    for trial in subject.trials:
        cell = trial.cell
        tasks.setdefault((cell.basis, cell.benchmark, cell.base_model), []).append(trial)
    cases: list[Case] = []
    for trials in tasks.values():
        cases += _usual("prompt", [(each, each.record.prompt_shared) for each in trials])
    for trial in subject.trials:
        added = trial.record.prompt_additions
        if added is None:
            cases.append(unknown(trial.cell.trial, trial.weight, "what its scaffold adds to the prompt"))
        cases += [noted(trial.cell.trial, f"added to the prompt: {sentence}") for sentence in added or ()]
    return decide("B1", f"prompts of {len(subject.trials)} trials on {len(tasks)} tasks", cases)


def _judges(subject: Subject) -> Finding:
    cases = [case for trial in subject.trials for case in _of_own_vendor(trial, subject)]
    cases += _keys(subject.trials)
    for key, setup in subject.setups.items():
        test = setup.rename_test
        if test is None:
            cases.append(unknown(short(key), 1.0, "whether a submission scores the same under other names"))
        elif test.equal:
            cases.append(fine(short(key), 1.0, f"{test.renamed}, renamed, scores the same"))
        else:
            cases.append(wrong(short(key), 1.0, f"{test.renamed}, renamed, scores otherwise"))
        for each in setup.judge_agreement or ():
            cases.append(noted(short(key), f"{' and '.join(each.judges)} agree on {each.agreed} of {each.cases}"))
    return decide("B2", f"judges and keys of {len(subject.trials)} trials", cases)


def _of_own_vendor(trial: Trial, subject: Subject) -> Iterator[Case]:
    name, weight, record, setup = trial.cell.trial, trial.weight, trial.record, subject.setup(trial)
    if record.vendor is None:
        yield unknown(name, weight, "whose model its agent is")
        return
    if record.votes is None:
        yield unknown(name, weight, "who judged it")
        return
    vendors: set[str] = set()
    for vote in record.votes:
        if vote.vendors is None:
            yield unknown(name, weight, "whose models its judges are")
        vendors |= set(vote.vendors or ())
    judge = subject.basis(trial).judge
    vendors |= {each.vendor for each in setup.calibration or () if each.vendor is not None and each.judge == judge}
    compared = any(
        record.vendor in each.vendors and each.vendors[0] != each.vendors[1]
        for each in setup.judge_agreement or ()
        if each.vendors is not None
    )
    if record.vendor in vendors and not compared:
        yield wrong(
            name, weight, f"judged by a model of its agent's own vendor, {record.vendor}, compared with no other"
        )
    else:
        yield fine(name, weight)


def _keys(trials: Sequence[Trial]) -> Iterator[Case]:
    """Equal in effect: beside the secrets that all have on a benchmark, each agent has as many, its provider's."""
    for benchmark in sorted({each.cell.benchmark for each in trials}):
        of = [each for each in trials if each.cell.benchmark == benchmark]
        given = [set(each.record.keys) for each in of if each.record.keys is not None]
        common = set[str].intersection(*given) if given else set[str]()
        counts = [len(keys - common) for keys in given]
        usual = max(sorted(set(counts)), key=counts.count) if counts else 0
        for each in of:
            if each.record.keys is None:
                yield unknown(each.cell.trial, each.weight, "which secrets it was given")
                continue
            own = sorted(set(each.record.keys) - common)
            if len(own) != usual:
                says = f"secrets of its own: {', '.join(own) or 'none'}; others have {usual} of their own"
                yield wrong(each.cell.trial, each.weight, says)
            else:
                yield fine(each.cell.trial, each.weight)


def _means(subject: Subject) -> Finding:
    cases: list[Case] = []
    for key, basis in subject.bases.items():
        ranked = [
            each
            for each in subject.trials
            if each.cell.basis == key
            and (of := each.cell.configuration)
            and (of.hours, of.gpus) == (basis.hours, basis.gpus)
        ]
        described = [(each, each.record.hardware and each.record.hardware.description) for each in ranked]
        cases += _usual("hardware", described)
        cases += _usual("image", [(each, each.record.container) for each in ranked])
        cases += _usual("network", [(each, each.record.network and each.record.network.mode) for each in ranked])
        cases += _usual("time", [(each, each.record.limits and each.record.limits.hours) for each in ranked])
        cases += _runs(subject, key)
    return decide("B3", f"hardware, image, network, time and runs of {len(subject.trials)} trials", cases)


def _runs(subject: Subject, key: str) -> Iterator[Case]:
    planned = subject.setups[key].planned_runs
    if planned is None:
        yield unknown(short(key), 1.0, "how many runs were planned")
        return
    rows = [row for board in subject.boards if board.key == key for row in board.rows]
    if not rows:
        yield unknown(short(key), 1.0, "how many runs there are")
    for row in rows:
        if row.score.n == planned:
            yield fine(row.configuration.digest, 0.0)
        else:
            says = f"{row.configuration.agent} has {row.score.n} runs, {planned} were planned"
            yield wrong(row.configuration.digest, 1 / len(rows), says)


def _usual(name: str, values: Sequence[tuple[Trial, object]]) -> Iterator[Case]:
    """All have the most common value, or are wrong."""
    told = [value for _, value in values if value is not None]
    usual = max(told, key=lambda value: (told.count(value), str(value))) if told else None
    for trial, value in values:
        if value is None:
            yield unknown(trial.cell.trial, trial.weight, f"its {name}")
        elif value != usual:
            yield wrong(trial.cell.trial, trial.weight, f"its {name} is {value}, others have {usual}")
        else:
            yield fine(trial.cell.trial, trial.weight)
