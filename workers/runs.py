"""Finding and creating runs: the same resolved recipe finds its unfinished run again."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from temporalio.client import Client, WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy

from activities.stores import Stores
from db.errors import Fenced
from stepwell.contracts.run import RunInput
from stepwell.events import RunCreated, RunFinished, RunForked
from stepwell.events.run_finished import RunEnd
from stepwell.events.streams import run_stream
from stepwell.recipe.loading import RecipeError, resolve
from stepwell.recipe.recipe import Recipe
from stepwell.tasks.manifest import TaskEntry, TaskManifest, task_blob
from stepwell.tasks.r2e.task_set import BrokenSet
from stepwell.tasks.task import Task
from workers.task_sets import TaskSets, make_task_sets
from workflows.contracts import CONTROL_QUEUE
from workflows.ids import run_id
from workflows.training_run import TrainingRun


@dataclass(frozen=True)
class KnownRun:
    """A run in the ledger."""

    name: str
    recipe: str
    """Name of its recipe."""
    digest: str
    """Digest of its recipe as this version of Stepwell resolves it."""
    end: RunEnd | None
    """How it ended, if it did."""
    fork: RunForked | None = None
    """What it goes on from, if it is a fork."""


async def known_runs(stores: Stores) -> list[KnownRun]:
    """Every run, oldest first."""
    runs: list[KnownRun] = []
    for stream in await stores.ledger.streams("run/"):
        recorded = await stores.ledger.read(stream)
        created, last = recorded[0].event, recorded[-1].event
        if isinstance(created, RunCreated):
            end = last.end if isinstance(last, RunFinished) else None
            name = stream.removeprefix("run/")
            fork = next((each.event for each in recorded[1:2] if isinstance(each.event, RunForked)), None)
            runs.append(KnownRun(name, str(created.recipe.get("name", "")), digest_today(created), end, fork))
    return runs


def digest_today(created: RunCreated) -> str:
    """Digest of a recorded recipe as this version of Stepwell resolves it, with the keys that have come since: so a run
    from before an upgrade is found again. The recorded one for a recipe that is not read any more."""
    try:
        return resolve(created.recipe, source="a recorded run").digest
    except RecipeError:
        return created.recipe_digest


async def find_or_create(stores: Stores, recipe: Recipe, name: str | None) -> KnownRun:
    """The newest unfinished run of this recipe that is no fork, else a new one; with a name, the run of that name.

    Raises:
        RecipeError: the name is taken by a run of another recipe.
    """
    runs = await known_runs(stores)
    if name is not None:
        named = next((run for run in runs if run.name == name), None)
        if named is not None and named.digest != recipe.digest:
            raise RecipeError(
                f"--name {name}: a run of that name exists with another recipe (digest {named.digest[:12]}, this one "
                f"is {recipe.digest[:12]}): give another name, or the settings that it was started with"
            )
        return named or await _create(stores, recipe, name)
    same = [run for run in runs if run.digest == recipe.digest and run.end is None and run.fork is None]
    if same:
        return same[-1]
    return await _create(stores, recipe, next_name(runs, recipe))


def next_name(runs: Sequence[KnownRun], recipe: Recipe) -> str:
    """The first name of the recipe's that no run has."""
    taken = {run.name for run in runs}
    number = 1
    while f"{recipe.name}-{number}" in taken:
        number += 1
    return f"{recipe.name}-{number}"


async def start(client: Client, run: str, recipe: Recipe) -> "WorkflowHandle[TrainingRun, RunEnd]":
    """Starts the run's workflow, or finds the one that runs."""
    return await client.start_workflow(
        TrainingRun.run,
        RunInput(run=run, recipe=recipe.name, plan=recipe.plan()),
        id=run_id(run),
        task_queue=CONTROL_QUEUE,
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        static_summary=f"Run {run} of recipe {recipe.name}",
    )


async def _create(stores: Stores, recipe: Recipe, name: str) -> KnownRun:
    manifest = await store_task_sets(stores, await make_task_sets(recipe))
    return await append_created(stores, recipe, name, (await stores.blobs.put(manifest.blob())).digest)


async def append_created(
    stores: Stores, recipe: Recipe, name: str, task_set: str, fork: RunForked | None = None
) -> KnownRun:
    """Appends the first event of a run, and of a fork the second.

    Raises:
        RecipeError: the name was taken just now.
    """
    created = RunCreated(recipe=recipe.model_dump(mode="json"), recipe_digest=recipe.digest, task_set=task_set)
    events = [created] if fork is None else [created, fork]
    try:
        await stores.ledger.append(run_stream(name), events, expected_seq=0, actor=stores.actor)
    except Fenced:
        raise RecipeError(f"run {name} was created by somebody else just now: run the command again") from None
    return KnownRun(name, recipe.name, recipe.digest, None, fork)


async def store_task_sets(stores: Stores, sets: TaskSets) -> TaskManifest:
    """Stores the tasks, and the files that they name; returns which stands where.

    Raises:
        BrokenSet: a file was changed.
    """

    async def entries(tasks: Sequence[Task]) -> tuple[TaskEntry, ...]:
        refs = await stores.blobs.put_many(_blobs(tasks))
        return tuple(TaskEntry(id=task.id, blob=ref.digest) for task, ref in zip(tasks, refs, strict=True))

    for file in sets.secrets:
        stored = await stores.blobs.put_file(file)
        if stored.digest != file.name:
            raise BrokenSet(f"{file} has SHA-256 {stored.digest}, not its name: it was changed; import the set anew")
    return TaskManifest(
        train=await entries(sets.train),
        reserve=await entries(sets.reserve),
        demonstrated=await entries(sets.demonstrated),
        main=await entries(sets.main),
        confirm=await entries(sets.confirm),
        heldout=await entries(sets.heldout),
    )


def _blobs(tasks: Iterable[Task]) -> list[bytes]:
    return [task_blob(task) for task in tasks]
