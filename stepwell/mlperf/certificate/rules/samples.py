"""No sample was lost, and none counts twice: each prompt of the curriculum gave all its rollouts to its own step."""

from stepwell.audit.finding import Finding, Tally
from stepwell.audit.record import RunRecord, StreamRecord, outcome_of
from stepwell.events import GroupClosed, GroupOpened
from stepwell.events.group_closed import Fate
from stepwell.mlperf.certificate.batches import admitted_batches
from stepwell.mlperf.certificate.recipe import CertifiedRecipe, recipe_of

HOLDS = "each prompt was trained with all its rollouts, each of them scored and in one batch; none was replaced"
UNIT = "samples"


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule to each step's prompts, then to each batch."""
    recipe = recipe_of(record)
    if recipe is None:
        return  # the rule `whole` says so
    for step in record.steps.values():
        for seq, replaced in step.replacements:
            what = f"prompt {replaced.replaces} of step {replaced.step} was replaced by one of the reserve"
            tally.findings.append(Finding(record.run_events.name, seq, what))
        for prompt in step.prompts[: len(step.event.tasks)]:
            group = record.streams.get(prompt.stream)
            if group is not None:  # of one that is not there the rule `fates` tells
                _check_group(record, group, recipe, tally)
    _check_batches(record, recipe, tally)


def _check_group(record: RunRecord, group: StreamRecord, recipe: CertifiedRecipe, tally: Tally) -> None:
    wanted = recipe.run.samples_per_prompt
    for seq, opened in group.every(GroupOpened):
        what = f"opened for {opened.samples} rollouts, the recipe says {wanted}"
        tally.expect(opened.samples == wanted, group.name, seq, what)
    for seq, closed in group.every(GroupClosed):
        if closed.fate is not Fate.TRAINED:
            what = f"its prompt was {closed.fate.value}, not trained: {closed.cause or 'no cause given'}"
            tally.findings.append(Finding(group.name, seq, what))
            continue
        for sample in range(len(closed.scores)):
            name = f"{record.rollouts_below(group.name)}{sample}"
            rollout = record.find(name)
            graded, failed = outcome_of(rollout)[1:] if rollout else (None, None)
            cause = f"it failed ({failed.failure}): {failed.cause}" if failed else "it has no score"
            last = None if rollout is None else rollout.child.seq
            tally.expect(graded is not None, name, last, f"lost to its group, which was trained without it: {cause}")


def _check_batches(record: RunRecord, recipe: CertifiedRecipe, tally: Tally) -> None:
    first: dict[str, int] = {}
    for batch in admitted_batches(record):
        step, found = batch.manifest.step, len(batch.manifest.samples)
        if found != recipe.samples_per_step:
            what = f"the batch of step {step} has {found} samples, the recipe makes it {recipe.samples_per_step}"
            tally.findings.append(Finding(record.run_events.name, batch.seq, what))
        for sample in batch.manifest.samples:
            before = first.setdefault(sample.stream, step)
            if before != step:
                what = f"the batch of step {step} has {sample.stream}, which step {before} was trained on"
                tally.findings.append(Finding(record.run_events.name, batch.seq, what))
