"""A step's groups and batch, computed again from how its rollouts ended, by the settings that were in force."""

from collections.abc import Mapping

from stepwell.audit.recipe import AuditedRecipe
from stepwell.audit.replaying.step_record import GroupRecord, RolloutRecord, StepRecord
from stepwell.events import GroupClosed, RolloutGraded
from stepwell.events.group_closed import Fate
from stepwell.rl.admission import Admission, ClosedGroup, NotReady, admit
from stepwell.rl.batching import BatchManifest, RolloutFacts, build_manifest
from stepwell.rl.grouping import MemberEnd, close_group
from stepwell.rl.outcomes import rollout_facts

Grades = Mapping[str, RolloutGraded]
"""Scores in the place of those that are recorded, by the rollout's stream."""

RECORDED: Grades = {}
"""Every rollout with the score that is recorded."""


def group_closed(group: GroupRecord, grades: Grades = RECORDED) -> GroupClosed:
    """How a group must have ended, as its rollouts did. Whether an operator took its prompt out is recorded, and no
    consequence of anything."""
    members = [MemberEnd(_graded(each, grades), each.failed, each.child) for each in group.rollouts]
    skipped = group.closed.cause if group.closed is not None and group.closed.fate is Fate.SKIPPED else ""
    return close_group(members, "train", skipped)


def admission(step: StepRecord, recipe: AuditedRecipe, grades: Grades = RECORDED) -> Admission:
    """Which prompts a step trains, and what became of the others.

    Raises:
        NotReady: a prompt has no fate yet.
        Inadmissible: a group of another version than the step's, or the like.
    """
    groups: list[ClosedGroup] = []
    for group in step.groups:
        if group.opened is None or group.closed is None:
            raise NotReady(f"step {step.step}: no fate yet for prompts [{group.prompt}]")
        fate = group_closed(group, grades).fate
        groups.append(ClosedGroup(prompt=group.prompt, fate=fate, version=group.opened.version))
    return admit(step.step, len(groups), step.dispatched.staleness(recipe.run.max_staleness), groups)


def batch_rollouts(step: StepRecord, recipe: AuditedRecipe, grades: Grades = RECORDED) -> list[RolloutFacts]:
    """The rollouts of a step's batch, each with its score and its mask. Raises as `admission`."""
    trained = frozenset(admission(step, recipe, grades).prompts)
    return [
        rollout_facts(
            each.stream,
            each.ended,
            _graded(each, grades),
            each.failed,
            rows=each.rows,
            overlong_filtering=recipe.rl.overlong_filtering,
        )
        for group in step.groups
        if group.prompt in trained
        for each in group.rollouts
    ]


def batch_of(step: StepRecord, recipe: AuditedRecipe, grades: Grades = RECORDED) -> BatchManifest:
    """A step's batch manifest: members, masks, advantages, packing.

    Args:
        step: What is recorded of it.
        recipe: The run's, or another in its place: what the same rollouts would have been trained as under it.
        grades: Scores in the place of those recorded.

    Raises:
        NotReady, Inadmissible: as `admission`.
        ValueError: no batch can be made of the rollouts (see `stepwell.rl.batching.build_manifest`).
    """
    return build_manifest(
        step=step.step,
        parent_version=step.step,
        temperature=recipe.sampling.temperature,
        rollouts=batch_rollouts(step, recipe, grades),
        grpo=recipe.rl,
        packing=recipe.trainer.packing,
        run_seed=recipe.run.seed,
    )


def _graded(rollout: RolloutRecord, grades: Grades) -> RolloutGraded | None:
    return grades.get(rollout.stream, rollout.graded)
