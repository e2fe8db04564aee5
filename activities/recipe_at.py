"""The recipe as it was in force for a step: the run's, with what operators had set when the step was dispatched."""

from activities.stores import Stores
from stepwell.events import StepDispatched
from stepwell.events.streams import run_stream
from stepwell.recipe.live import recipe_with
from stepwell.recipe.recipe import Recipe


async def recipe_at(stores: Stores, run: str, step: int) -> Recipe:
    """The recipe that decides a step: its generation, admission and training.

    Raises:
        NoSuchRun: there is no such run.
        LookupError: the step was not dispatched, so that nothing is fixed for it.
    """
    recipe = (await stores.run_facts(run)).recipe
    for recorded in await stores.ledger.read(run_stream(run)):
        if isinstance(recorded.event, StepDispatched) and recorded.event.step == step:
            return recipe_with(recipe, recorded.event.settings)
    raise LookupError(f"run {run}: step {step} was not dispatched, so no recipe is in force for it")
