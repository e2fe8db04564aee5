"""Keys of a recipe that can be set while the run goes on, each from its next step on.

What was set is recorded with each step (`StepDispatched.settings`), so that whoever trains, checks or replays the step
reads the recipe as it was then.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError, create_model

from stepwell.nearest_names import did_you_mean
from stepwell.recipe.sections import FailureSection, RunSection, Section
from stepwell.rl.config import OptimiserConfig

if TYPE_CHECKING:  # workflows import this module, and a recipe's policies are more than they need
    from stepwell.recipe.recipe import Recipe

LIVE: Mapping[str, type[Section] | type[OptimiserConfig]] = {
    "optimiser.learning_rate": OptimiserConfig,
    "run.groups_in_flight": RunSection,
    "run.max_staleness": RunSection,
    "failures.rollout_timeout_s": FailureSection,
    "failures.step_timeout_s": FailureSection,
    "failures.group_timeout_s": FailureSection,
}
"""The section of each."""


def check_setting(key: str, value: float) -> float | int:
    """A value in the type of its key.

    Raises:
        ValueError: the key cannot be set, or not to this; says what can.
    """
    if key not in LIVE:
        meant = did_you_mean(key, LIVE)
        raise ValueError(
            f"{key!r} cannot be set in a run{f' ({meant})' if meant else ''}; there are {', '.join(sorted(LIVE))}"
        )
    name = key.partition(".")[2]
    field = LIVE[key].model_fields[name]
    alone = cast(Any, create_model)("Setting", **{name: (field.annotation, field)})
    try:
        return getattr(alone(**{name: value}), name)
    except ValidationError as error:
        raise ValueError(f"{key} = {value:g}: {error.errors()[0]['msg']}") from None


def recipe_with(recipe: "Recipe", settings: Mapping[str, float | int]) -> "Recipe":
    """The recipe as it is with what was set."""
    if not settings:
        return recipe
    changed: dict[str, dict[str, float | int]] = {}
    for key, value in settings.items():
        section, _, name = key.partition(".")
        changed.setdefault(section, {})[name] = value
    return recipe.model_copy(
        update={name: getattr(recipe, name).model_copy(update=keys) for name, keys in changed.items()}
    )
