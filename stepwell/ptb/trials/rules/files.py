"""Every trial starts from the same files, and is evaluated on those with which the run set began."""

from stepwell.audit.finding import Finding, Tally
from stepwell.events import SubmissionEvaluated, TrialPrepared
from stepwell.ptb.trials.audited import RESULT, AuditedTrial, RunSetRecord

HOLDS = "agents on a cell start from equal files; benchmarks and base models are those that the first event pins"
UNIT = "digests"


def check(record: RunSetRecord, tally: Tally) -> None:
    """Applies the rule to the run set, then to what trials start from, then to what they are evaluated on."""
    if record.created is None or record.recipe is None:
        return  # the rule `cells` says so
    _check_pins(record, tally)
    first: dict[tuple[str, str], tuple[TrialPrepared, AuditedTrial]] = {}
    for trial in record.trials:
        for seq, prepared in trial.stream.every(TrialPrepared):
            known, other = first.setdefault(trial.place, (prepared, trial))
            for name in ("workspace", "files"):
                found, wanted = getattr(prepared, name), getattr(known, name)
                tally.expect(found == wanted, trial.name, seq, f"{name} is {found}, that of {other.cell} {wanted}")
    references: dict[tuple[str, str], tuple[str, AuditedTrial]] = {}
    for trial in record.trials:
        for seq, evaluated in trial.stream.every(SubmissionEvaluated):
            _check_evaluated(record, trial, seq, evaluated, references, tally)


def _check_pins(record: RunSetRecord, tally: Tally) -> None:
    assert record.created is not None  # looked at above
    assert record.recipe is not None
    pinned = record.created.digests
    wanted = {"regime", *(f"base/{model}" for model in record.recipe.all_models)}
    wanted |= {f"instruct/{name}" for name in record.recipe.all_models if record.recipe.models[name].instruct}
    wanted |= {f"benchmark/{benchmark}" for benchmark in record.recipe.all_benchmarks}
    wanted |= {name for name in pinned if name.startswith("mount/")}
    for name in sorted(wanted):
        tally.expect(name in pinned, record.own, 0, f"pins no digest of {name}")
        here = record.digests_here
        if here is not None and name in pinned:
            is_same = here.get(name) == pinned[name]
            tally.expect(is_same, record.own, 0, f"{name} was {pinned[name]}, here it is {here.get(name)}")
    for benchmark in record.recipe.all_benchmarks:
        data = None if record.basis is None else record.basis.data.get(benchmark)
        if data is not None and data != pinned.get(f"benchmark/{benchmark}", data):
            found = pinned[f"benchmark/{benchmark}"]
            tally.findings.append(Finding(record.own, 0, f"benchmark/{benchmark} is {found}, its basis has {data}"))


def _check_evaluated(
    record: RunSetRecord,
    trial: AuditedTrial,
    seq: int,
    evaluated: SubmissionEvaluated,
    references: dict[tuple[str, str], tuple[str, AuditedTrial]],
    tally: Tally,
) -> None:
    """The data are the pinned ones, and a base or instruct model is the same on every benchmark."""
    result = record.read(evaluated.report, RESULT)
    if result is None:
        return  # the rules `blobs` and `documents` say so
    assert record.created is not None  # looked at above
    said = (result.base_model, result.benchmark, result.data)
    wanted = (*trial.place, record.created.digests.get(f"benchmark/{trial.created.benchmark}"))
    tally.expect(said == wanted, trial.name, seq, f"evaluated on {said}, wanted {wanted}")
    if trial.created.role != "agent" and result.submission is not None:
        key = (trial.created.role, trial.created.base_model)
        digest, other = references.setdefault(key, (result.submission.digest, trial))
        found = result.submission.digest
        tally.expect(
            digest == found, trial.name, seq, f"its model has the digest {found}, that of {other.cell} {digest}"
        )
