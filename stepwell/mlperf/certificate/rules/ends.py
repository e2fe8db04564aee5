"""Every counted rollout came to an end of its own: one that a clock cut off is never a sample.

What counts is, in training, a rollout that has a vote in its group and a part in the loss; in an evaluation, a rollout
that passed. There every task keeps all its samples, so one that was cut off stands as a failure.
"""

from stepwell.agent.protocol import StopReason
from stepwell.audit.finding import Tally
from stepwell.audit.record import RunRecord, outcome_of
from stepwell.events import GroupClosed
from stepwell.mlperf.certificate.batches import admitted_batches

HOLDS = "each counted rollout ended by itself and was graded to the end: none was cut off by a clock"
UNIT = "counted rollouts"


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule to each sample of each batch, then to each sample that passed in an evaluation."""
    for batch in admitted_batches(record):
        for sample in batch.manifest.samples:
            if sample.mask is None:
                _check(record, sample.stream, f"counted in the batch of step {batch.manifest.step}", tally)
    for group in record.of_kind("prompt"):
        if group.name.split("/")[2].isdigit():
            continue
        for _, closed in group.every(GroupClosed):
            for sample, score in enumerate(closed.scores):
                if score is not None and score > 0:
                    _check(record, f"{record.rollouts_below(group.name)}{sample}", "counted as passed", tally)


def _check(record: RunRecord, name: str, counted: str, tally: Tally) -> None:
    rollout = record.find(name)
    if rollout is None:
        tally.expect(False, name, None, f"{counted}, and not recorded")
        return
    ended, graded, failed = outcome_of(rollout)
    last = rollout.child.seq
    if ended is None or graded is None or failed is not None:
        cause = f"it failed: {failed.cause}" if failed else "it has no end" if ended is None else "it has no score"
        tally.expect(False, name, last, f"{counted}, but {cause}")
        return
    is_cut = ended.reason is StopReason.WALL_CLOCK or graded.timed_out
    by = "its tests" if graded.timed_out else "the agent"
    tally.expect(not is_cut, name, last, f"{counted}, though {by} ran out of time: what a clock cut off is no sample")
