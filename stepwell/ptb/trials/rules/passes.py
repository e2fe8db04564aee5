"""The passes of an evaluation are the regime's: how many, under which seeds, with how many tokens."""

from collections.abc import Sequence

from stepwell.audit.finding import Finding, Tally
from stepwell.events import PassScored, SubmissionEvaluated
from stepwell.ptb.benchmarks import benchmark
from stepwell.ptb.trials.audited import AuditedTrial, RunSetRecord

HOLDS = (
    "each evaluation without a failure has the passes of the regime, under its seeds and one of its limits of tokens"
)
UNIT = "evaluations"


def check(record: RunSetRecord, tally: Tally) -> None:
    """Applies the rule to each evaluation that ended."""
    for trial in record.trials:
        passes = trial.stream.every(PassScored)
        for seq, evaluated in trial.stream.every(SubmissionEvaluated):
            if evaluated.failure:
                tally.expect(not passes, trial.name, seq, f"failed, and has {len(passes)} passes")
                continue
            seeds = [one.seed for _, one in passes]
            wanted, exact = _wanted(record, trial)
            fits = not wanted or seeds == (wanted if exact else wanted[: max(1, len(seeds))])
            tally.expect(fits, trial.name, seq, f"passes under the seeds {seeds}, wanted {wanted}")
            _check_tokens(record, trial, seq, evaluated, passes, tally)


def _wanted(record: RunSetRecord, trial: AuditedTrial) -> tuple[list[int], bool]:
    """The seeds, and whether all of them are wanted. Without the regime the basis has them, and not how many of them a
    benchmark is given that a judge scores."""
    judged = benchmark(trial.created.benchmark).needs == "judge"
    if record.regime is not None:
        return list(record.regime.seeds_of(trial.created.benchmark, trial.created.seed, judged=judged)), True
    if record.basis is None:
        return [], True  # the rule `cells` says so
    return list(record.basis.seeds or (trial.created.seed,)), not judged


def _check_tokens(
    record: RunSetRecord,
    trial: AuditedTrial,
    seq: int,
    evaluated: SubmissionEvaluated,
    passes: Sequence[tuple[int, PassScored]],
    tally: Tally,
) -> None:
    for place, one in passes:
        if one.max_tokens != evaluated.max_tokens:
            what = f"a pass with {one.max_tokens} tokens an answer, the evaluation says {evaluated.max_tokens}"
            tally.findings.append(Finding(trial.name, place, what))
    allowed = () if record.regime is None else record.regime.max_tokens.get(trial.created.benchmark, ())
    if allowed and evaluated.max_tokens not in allowed:
        what = f"{evaluated.max_tokens} tokens an answer, the regime tries {', '.join(map(str, allowed))}"
        tally.findings.append(Finding(trial.name, seq, what))
