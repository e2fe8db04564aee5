"""Every eligible sequence went through the policy: none was dropped for an advantage of zero or for what the importance
correction makes of it (MLCommons policies, pull request 597).

Eligible is a rollout that was scored and has a row of tokens. Two records must agree: the batch, in whose micro-batches
each of its rows stands once, and what the trainer counted of positions and generated tokens in that step. A sequence
that the importance correction gives the weight 0 still counts in the denominator of the loss, which the trainer's count
of loss tokens shows; a row that the comparison of trainer and engine masks does not, and the trainer says how many.
"""

from collections import Counter

from stepwell.audit.finding import Finding, Tally
from stepwell.audit.record import RunRecord
from stepwell.events import StepTrained
from stepwell.mlperf.certificate.batches import AdmittedBatch, admitted_batches
from stepwell.rl.batching import BatchRow

HOLDS = "each eligible sequence is in one micro-batch of its step, and the trainer counted the tokens of all of them"
UNIT = "sequences"

MISMATCHED = "masked_mismatch"
"""Metric of the trainer: rows that the comparison with the engine masked."""


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule to each batch, and to what was trained of it."""
    for batch in admitted_batches(record):
        rows = batch.manifest.rows()
        eligible = {index for index, row in enumerate(rows) if row.tokens > 0 and row.generated_tokens > 0}
        _check_micro_batches(record, batch, rows, eligible, tally)
        for seq, trained in record.weights.every(StepTrained) if record.weights else ():
            if trained.step == batch.manifest.step and record.weights is not None:
                every = [rows[index] for index in sorted(eligible)]
                _check_counts(record.weights.name, seq, trained, every, tally)


def _check_micro_batches(
    record: RunRecord, batch: AdmittedBatch, rows: tuple[BatchRow, ...], eligible: set[int], tally: Tally
) -> None:
    stream = record.run_events.name
    times = Counter(index for micro in batch.manifest.micro_batches for index in micro.samples)
    for index in sorted(eligible):
        row = rows[index]
        what = f"the batch of step {batch.manifest.step} has {row.stream} (advantage {row.advantage:g}) in "
        tally.expect(times[index] == 1, stream, batch.seq, f"{what}{times[index]} micro-batches, wanted 1")
    for index in sorted(times.keys() - eligible):
        what = f"the batch of step {batch.manifest.step} has row {index} in a micro-batch, which nobody can train"
        tally.findings.append(Finding(stream, batch.seq, what))


def _check_counts(stream: str, seq: int, trained: StepTrained, rows: list[BatchRow], tally: Tally) -> None:
    generated = sum(row.generated_tokens for row in rows)
    counted = sum(row.generated_tokens for row in rows if row.mask is None)
    wanted = {"tokens": sum(row.tokens for row in rows), "generated_tokens": generated, "loss_tokens": counted}
    for name, of_batch in wanted.items():
        found = trained.metrics.get(name)
        holds = found == of_batch
        if name == "loss_tokens" and found is not None and trained.metrics.get(MISMATCHED, 0) > 0:
            holds = found < of_batch
        said = "does not say how many" if found is None else f"counted {found:g}"
        what = f"the trainer {said} {name} of step {trained.step}, its {len(rows)} eligible sequences have {of_batch}"
        tally.expect(holds, stream, seq, what)
