"""Forks: a new run that goes on from a version of another one, and shares by reference all that came before.

The fork's recipe is its parent's, as operators had left it at that step, with what is set anew. Rollouts that the
parent made for the first steps of the fork are taken over where the fork would make the same: same task, tokens, seeds
and version. Which they are is fixed when the fork is made, in its `RunForked`; each group is taken over when its step
is dispatched (`activities.adoption`).
"""

from collections.abc import Sequence
from itertools import cycle, islice

from activities.stores import NoSuchRun, Stores
from db.recorded import Recorded
from stepwell.events import (
    GroupClosed,
    GroupOpened,
    RunCreated,
    RunForked,
    StepCompleted,
    StepDispatched,
    StepTrained,
    ValidationRecorded,
    VersionCreated,
)
from stepwell.events.base import facts_digest
from stepwell.events.children import ChildHead
from stepwell.events.group_closed import Fate
from stepwell.events.run_forked import SharedEvent, SharedScore, SharedVersion
from stepwell.events.streams import operator_stream, prompt_stream, run_stream
from stepwell.nearest_names import did_you_mean
from stepwell.operators.fold import fold_operators
from stepwell.recipe.forking import GENERATION, SHARED, VALIDATION, changed_keys
from stepwell.recipe.live import recipe_with
from stepwell.recipe.loading import RecipeError, resolve, with_settings
from stepwell.recipe.recipe import Recipe
from stepwell.rl.schedule import generation_version, prompts_of_step
from stepwell.tasks.manifest import TaskEntry, TaskManifest
from workers.runs import KnownRun, append_created, known_runs, next_name, store_task_sets
from workers.task_sets import make_task_sets


class CannotFork(RecipeError):
    """The run cannot be forked there, or not with these settings."""


async def find_or_fork(
    stores: Stores, parent: str, step: int, settings: Sequence[str], name: str | None = None
) -> tuple[KnownRun, Recipe]:
    """The newest unfinished fork of this run, step and recipe, else a new one; with a name, the one of that name.

    Args:
        stores: Of a control worker.
        parent: Run to go on from, itself a fork or not.
        step: Number of its version that the fork begins with.
        settings: Of the form `section.key=value`.
        name: Of the fork; else the next one of the recipe.

    Raises:
        NoSuchRun: there is no such run.
        CannotFork: it has no such version, or a setting cannot be changed in a fork.
        RecipeError: the settings give no recipe, or the name is another run's.
    """
    runs = await known_runs(stores)
    if all(run.name != parent for run in runs):
        meant = did_you_mean(parent, [run.name for run in runs])
        raise NoSuchRun(f"the ledger has no run {parent!r}{f': {meant}' if meant else ''}")
    while (of := (await stores.run_facts(parent)).fork) is not None and step <= of.step:
        parent = of.parent  # the version is not its own
    history = await stores.ledger.read(run_stream(parent))
    begins = _completed(parent, step, history)
    before = await _recipe_before(stores, parent, step, history)
    recipe = resolve(with_settings(before.model_dump(mode="json"), settings), source=f"fork of {parent}")
    _check_shared(before, recipe, step)
    for run in reversed(runs):
        begins_there = run.fork is not None and (run.fork.parent, run.fork.step) == (parent, step)
        same = begins_there and run.digest == recipe.digest
        if run.name == name and not same:
            raise RecipeError(f"--name {name}: a run of that name exists, and is not this fork: give another name")
        if same and (run.name == name if name is not None else run.end is None):
            return run, recipe
    task_set, manifest = await _task_set(stores, parent, before, recipe, history)
    fork = RunForked(
        parent=parent,
        step=step,
        head=_shared(begins),
        versions=await _versions(stores, parent, generation_version(step, recipe.run.max_staleness), step),
        scores=_scores(history, step) if _equal(before, recipe, VALIDATION) else [],
        reused=await _reused(stores, parent, step, before, recipe, manifest),
    )
    return await append_created(stores, recipe, name or next_name(runs, recipe), task_set, fork), recipe


def _completed(run: str, step: int, history: Sequence[Recorded]) -> Recorded:
    """The event of `run/<run>` by which it has a version.

    Raises:
        CannotFork: it has not.
    """
    completed = {each.event.version: each for each in history if isinstance(each.event, StepCompleted)}
    first = next((each.event.step for each in history if isinstance(each.event, RunForked)), 0)
    if step in completed:
        return completed[step]
    if step == first == 0:
        return history[0]
    there = f"versions {first} to {max(completed, default=first)}"
    raise CannotFork(f"--at {step}: run {run} has {there}; a fork begins with one of them")


async def _recipe_before(stores: Stores, run: str, step: int, history: Sequence[Recorded]) -> Recipe:
    """The recipe that the run's own next step has, or would have, from a version on."""
    recipe = (await stores.run_facts(run)).recipe
    for each in history:
        if isinstance(each.event, StepDispatched) and each.event.step == step:
            return recipe_with(recipe, each.event.settings)
    operators = await stores.ledger.read(operator_stream(run))
    return recipe_with(recipe, fold_operators([each.event for each in operators]).settings)


def _equal(before: Recipe, after: Recipe, keys: Sequence[str]) -> bool:
    return not changed_keys(before.model_dump(mode="json"), after.model_dump(mode="json"), keys)


def _check_shared(before: Recipe, after: Recipe, step: int) -> None:
    for key in SHARED:
        if not _equal(before, after, [key]):
            raise CannotFork(
                f"{key} cannot be set in a fork: it goes on with its parent's model, tasks and order of prompts; "
                "start a run of its own for others"
            )
    if after.run.max_steps <= step:
        raise CannotFork(
            f"run.max_steps = {after.run.max_steps}: a fork at version {step} has no step to do; set a larger one, for "
            f"example --set run.max_steps={step + 10}"
        )


async def _task_set(
    stores: Stores, parent: str, before: Recipe, recipe: Recipe, history: Sequence[Recorded]
) -> tuple[str, TaskManifest]:
    """Blob and contents of the list of tasks: the parent's, where it has all that the recipe asks for; else one that
    goes on where the parent's ends."""
    shared = (await stores.run_facts(parent)).manifest
    sets = ("failures.reserve", "validation.tasks", "validation.confirm_tasks", "validation.heldout_tasks")
    needed = recipe.run.max_steps * recipe.run.prompts_per_step
    if _equal(before, recipe, sets) and len(shared.train) >= needed:
        created = history[0].event
        assert isinstance(created, RunCreated)
        return created.task_set, shared
    made = await store_task_sets(stores, await make_task_sets(recipe))
    manifest = made.model_copy(update={"train": longer(shared.train, made.train, needed)})
    return (await stores.blobs.put(manifest.blob())).digest, manifest


def longer(train: Sequence[TaskEntry], made: Sequence[TaskEntry], needed: int) -> tuple[TaskEntry, ...]:
    """A curriculum that begins as another one, and goes on with what that one lacks, again and again if need be.

    Args:
        train: What it begins with.
        made: Tasks to go on with, in order; at least one.
        needed: Least prompts that it shall have.
    """
    known = set(train)
    extended = [*train, *(entry for entry in made if entry not in known)]
    missing = max(0, needed - len(extended))
    return (*extended, *islice(cycle(made), missing))


async def _versions(stores: Stores, run: str, first: int, last: int) -> list[SharedVersion]:
    made = {
        each.event.version: SharedVersion(
            version=each.event.version, exported=each.event.digests.exported, made_by=_shared(each)
        )
        for each in await stores.weights(run)
        if isinstance(each.event, VersionCreated | StepTrained)
    }
    return [made[version] for version in range(first, last + 1)]


def _scores(history: Sequence[Recorded], step: int) -> list[SharedScore]:
    return [
        SharedScore(
            version=score.version,
            dataset=score.dataset,
            pass_1=score.pass_1,
            pass_k=score.pass_k,
            k=score.k,
            recorded=_shared(each),
        )
        for each in history
        if isinstance(score := each.event, ValidationRecorded) and score.version <= step
    ]


async def _reused(
    stores: Stores, parent: str, step: int, before: Recipe, recipe: Recipe, manifest: TaskManifest
) -> list[ChildHead]:
    """Groups of the parent that the fork would make just so, of the steps that shared versions generate."""
    if not _equal(before, recipe, GENERATION):
        return []
    reused: list[ChildHead] = []
    prompts = recipe.run.prompts_per_step
    for at in range(step, min(step + recipe.run.max_staleness + 1, recipe.run.max_steps)):
        tasks = [manifest.train[position].blob for position in prompts_of_step(at, prompts)]
        groups = await stores.ledger.read_many(prompt_stream(parent, str(at), prompt) for prompt in range(prompts))
        for task, (name, recorded) in zip(tasks, groups.items(), strict=True):
            events = [each.event for each in recorded]
            match events:
                case [GroupOpened() as opened, GroupClosed() as closed] if closed.fate is Fate.TRAINED:
                    wanted = generation_version(at, recipe.run.max_staleness)
                    if (opened.task, opened.version) == (task, wanted):
                        last = recorded[-1]
                        reused.append(
                            ChildHead(stream=name, seq=last.seq, head=last.head.hash, facts=facts_digest(events))
                        )
                case _:
                    pass
    return reused


def _shared(recorded: Recorded) -> SharedEvent:
    return SharedEvent(stream=recorded.stream, seq=recorded.seq, hash=recorded.head.hash)
