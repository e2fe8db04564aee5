"""What was skipped, an operator asked to skip; what was not skipped came to an end of its own."""

from stepwell.audit.finding import Finding, Tally
from stepwell.audit.record import RunRecord, StreamRecord, outcome_of
from stepwell.events import GroupClosed, OperatorActed, RolloutFailed, StepAdmitted
from stepwell.events.group_closed import Fate

HOLDS = "each skipped prompt was asked for by an operator, and each rollout of a closed group has an end"
UNIT = "closed groups"


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule to each group that is closed."""
    acts = [act for _, act in record.operators.every(OperatorActed)]
    asked = {(str(act.arguments.get("step")), act.arguments.get("prompt")) for act in acts if act.action == "skip"}
    was_stopped = any(act.action == "stop" and act.arguments.get("at") == "now" for act in acts)
    admitted = {str(event.step) for _, event in record.run_events.every(StepAdmitted)}
    for group in record.of_kind("prompt"):
        scope, prompt = group.name.split("/")[-2:]
        for seq, closed in group.every(GroupClosed):
            if closed.fate is Fate.SKIPPED:
                by_stop = was_stopped and scope not in admitted
                tally.expect(
                    by_stop or (scope, int(prompt)) in asked,
                    group.name,
                    seq,
                    "skipped, but no operator asked for it: there is no act `skip` of it"
                    + (", and its step was admitted" if was_stopped else ", nor a `stop` at once"),
                )
            else:
                tally.checked += 1
            _check_rollouts(record, group, closed, seq, tally)


def _check_rollouts(record: RunRecord, group: StreamRecord, closed: GroupClosed, closed_seq: int, tally: Tally) -> None:
    below = record.rollouts_below(group.name)
    for sample in range(len(closed.scores)):
        rollout = record.find(f"{below}{sample}")
        if rollout is None:
            continue  # never begun; the rule `commitments` holds the group to those that were
        ended, graded, failed = outcome_of(rollout)
        is_over = graded is not None or failed is not None or (closed.fate is Fate.SKIPPED and ended is not None)
        if not is_over:
            what = f"closed as {closed.fate}, but its rollout {rollout.name} has neither a score nor a failure"
            tally.findings.append(Finding(group.name, closed_seq, what))
        for seq, event in rollout.every(RolloutFailed):
            if event.failure == "operator" and closed.fate is not Fate.SKIPPED:
                what = f"ended by an operator, but its prompt was not skipped: {closed.fate}"
                tally.findings.append(Finding(rollout.name, seq, what))
