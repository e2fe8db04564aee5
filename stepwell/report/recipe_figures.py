"""What a run's recipe says of it, as far as a picture shows it."""

from typing import Any


class RecipeFigures:
    """Figures of a resolved recipe; empty or None before the run's first event."""

    def __init__(self) -> None:
        self.recipe: dict[str, Any] = {}

    @property
    def target(self) -> float | None:
        """pass@k that ends the run, if it has one."""
        return number_of(self.recipe, "validation", "target")

    @property
    def max_steps(self) -> int | None:
        """Training steps of the whole run."""
        steps = number_of(self.recipe, "run", "max_steps")
        return None if steps is None else int(steps)

    @property
    def mismatch_bound(self) -> float | None:
        """Bound on a step's mean |log-probability by the trainer - by the engine|, in nats."""
        return number_of(self.recipe, "run", "mismatch_bound")

    @property
    def max_staleness(self) -> int | None:
        """Most versions that may lie between a batch's generation and its training, by the recipe."""
        bound = number_of(self.recipe, "run", "max_staleness")
        return None if bound is None else int(bound)

    @property
    def recipe_name(self) -> str:
        """Name of the recipe, empty before the run's first event."""
        return str(self.recipe.get("name", ""))


def number_of(recipe: dict[str, Any], *path: str) -> float | None:
    """A number of a recipe; None where it is not set."""
    value: Any = recipe
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return float(value) if isinstance(value, int | float) else None
