"""Every score is a verdict's, and groups hold the scores of their rollouts."""

from stepwell.audit.finding import Finding, Tally
from stepwell.audit.record import RunRecord, StreamRecord, outcome_of
from stepwell.events import GroupClosed, RolloutEnded, RolloutFailed, RolloutGraded, VerdictReached
from stepwell.events.streams import verdict_stream

HOLDS = "each score is that of a verdict on the rollout's own tree; what failed has none"
UNIT = "scores"


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule to rollouts and to the groups that hold their scores."""
    for rollout in record.of_kind("rollout"):
        _check_rollout(record, rollout, tally)
    for group in record.of_kind("prompt"):
        for seq, closed in group.every(GroupClosed):
            _check_group(record, group.name, seq, closed, tally)


def _check_rollout(record: RunRecord, rollout: StreamRecord, tally: Tally) -> None:
    ending, failing = rollout.first(RolloutEnded), rollout.first(RolloutFailed)
    for seq, graded in rollout.every(RolloutGraded):
        if failing is not None:
            tally.findings.append(Finding(rollout.name, max(seq, failing[0]), "both a score and a failure"))
        if ending is None or ending[1].verdict_key != graded.verdict_key:
            ended = "did not end" if ending is None else f"ended with verdict {ending[1].verdict_key}"
            tally.findings.append(Finding(rollout.name, seq, f"graded by {graded.verdict_key}, but it {ended}"))
        verdict = record.streams.get(verdict_stream(graded.verdict_key))
        reached = verdict.first(VerdictReached) if verdict else None
        if reached is None:
            tally.expect(False, rollout.name, seq, f"score {graded.score} of {graded.verdict_key}: no such verdict")
            continue
        said = reached[1]
        tally.expect(
            (graded.score, graded.timed_out) == (said.score, said.timed_out),
            rollout.name,
            seq,
            f"score {graded.score}, timed out {graded.timed_out}; its verdict says {said.score}, {said.timed_out}",
        )
        if ending is not None and ending[1].tree != said.tree:
            what = f"ended with tree {ending[1].tree}, its verdict is on tree {said.tree}"
            tally.findings.append(Finding(rollout.name, seq, what))


def _check_group(record: RunRecord, name: str, seq: int, closed: GroupClosed, tally: Tally) -> None:
    below = record.rollouts_below(name)
    for sample, score in enumerate(closed.scores):
        rollout = record.find(f"{below}{sample}")
        graded = outcome_of(rollout)[1] if rollout else None
        found = graded.score if graded else None
        tally.expect(found == score, name, seq, f"sample {sample} has the score {score}, its rollout {found}")
