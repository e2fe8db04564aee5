"""Finding and creating run sets: the same resolved recipe finds its unfinished run set again."""

import asyncio
import json
from dataclasses import dataclass

from temporalio.client import Client, WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy

from activities.stores import Stores
from db.errors import Fenced
from stepwell.contracts.trial import RunSetEnd, RunSetInput
from stepwell.events import RunSetCreated, RunSetFinished
from stepwell.events.streams import run_set_stream
from stepwell.ptb.trials import RunSetRecipe
from stepwell.ptb.trials.files import basis_of_run_set, digests_of
from stepwell.recipe.loading import RecipeError
from workflows.contracts import CONTROL_QUEUE
from workflows.ids import run_set_id
from workflows.run_set import RunSet


@dataclass(frozen=True)
class KnownRunSet:
    """A run set in the ledger."""

    name: str
    digest: str
    """Of its recipe."""
    cells: tuple[str, ...]
    """Names of its trials."""
    finished: bool
    """Whether each of them has its record."""


async def known_run_sets(stores: Stores) -> list[KnownRunSet]:
    """Every run set, oldest first."""
    found: list[KnownRunSet] = []
    for stream in await stores.ledger.streams("run-set/"):
        events = [each.event for each in await stores.ledger.read(stream)]
        created = events[0]
        if isinstance(created, RunSetCreated):
            finished = isinstance(events[-1], RunSetFinished)
            name = stream.removeprefix("run-set/")
            found.append(KnownRunSet(name, created.recipe_digest, tuple(created.cells), finished))
    return found


async def find_or_create(stores: Stores, recipe: RunSetRecipe, name: str | None) -> KnownRunSet:
    """The newest unfinished run set of this recipe, else a new one; with a name, the one of that name.

    Raises:
        RecipeError: the name is taken by a run set of another recipe, or the recipe names what cannot be.
    """
    known = await known_run_sets(stores)
    if name is not None:
        named = next((one for one in known if one.name == name), None)
        if named is not None and named.digest != recipe.digest:
            raise RecipeError(
                f"--name {name}: a run set of that name exists with another recipe (digest {named.digest[:12]}, this "
                f"one is {recipe.digest[:12]}): give another name, or the settings that it was started with"
            )
        return named or await _create(stores, recipe, name)
    same = [one for one in known if one.digest == recipe.digest and not one.finished]
    if same:
        return same[-1]
    number, taken = 1, {one.name for one in known}
    while f"{recipe.name}-{number}" in taken:
        number += 1
    return await _create(stores, recipe, f"{recipe.name}-{number}")


async def start(client: Client, run_set: str, recipe: RunSetRecipe) -> "WorkflowHandle[RunSet, RunSetEnd]":
    """Starts the run set's workflow, or finds the one that runs."""
    return await client.start_workflow(
        RunSet.run,
        RunSetInput(run_set=run_set, plan=recipe.plan()),
        id=run_set_id(run_set),
        task_queue=CONTROL_QUEUE,
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        static_summary=f"Run set {run_set} of recipe {recipe.name}",
    )


async def _create(stores: Stores, recipe: RunSetRecipe, name: str) -> KnownRunSet:
    digests = await asyncio.to_thread(digests_of, recipe)  # reads the models whole
    cells = [cell.name for cell in recipe.cells()]
    created = RunSetCreated(
        recipe=json.loads(recipe.model_dump_json()),
        recipe_digest=recipe.digest,
        cells=cells,
        basis=basis_of_run_set(recipe).model_dump(mode="json"),
        digests=digests,
    )
    try:
        await stores.ledger.append(run_set_stream(name), [created], expected_seq=0, actor=stores.actor)
    except Fenced:
        raise RecipeError(f"run set {name} was created by somebody else just now: run the command again") from None
    return KnownRunSet(name, recipe.digest, tuple(cells), finished=False)
