"""Checks what a worker implements against what workflows declare, before it takes any work."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, get_type_hints

from workflows.contracts import ALL_ACTIVITIES


class WrongActivity(TypeError):
    """An implementation that workflows do not expect: a defect of this build."""


def check_activities(activities: Sequence[Callable[..., Any]]) -> None:
    """Raises `WrongActivity` for a name that is not declared, or for other types than declared."""
    declared = {spec.name: spec for spec in ALL_ACTIVITIES}
    for implementation in activities:
        name = activity_name(implementation)
        if name not in declared:
            raise WrongActivity(f"{name} is implemented but not declared in workflows/contracts.py")
        spec = declared[name]
        hints = get_type_hints(inspect.unwrap(implementation))
        output = hints.pop("return", None)
        inputs = list(hints.values())
        if inputs != [spec.input_type] or output is not spec.output_type:
            raise WrongActivity(
                f"{name} takes {inputs} and gives {output}; declared are {spec.input_type} and {spec.output_type}"
            )


def activity_name(implementation: Callable[..., Any]) -> str:
    """Name under which a decorated function is registered."""
    definition = getattr(implementation, "__temporal_activity_definition", None)
    if definition is None:
        raise WrongActivity(f"{implementation} is no activity: it lacks @activity.defn")
    return str(definition.name)
