"""TrialCreated."""

from typing import Literal

from stepwell.events.base import Event


class TrialCreated(Event):
    """A trial began. First event of `trial/<run set>/<cell>`."""

    type: Literal["TrialCreated"] = "TrialCreated"

    cell: str
    """Name of the trial in its run set: `<agent>.<base model>.<benchmark>.<repetition>`."""
    recipe_digest: str
    """Of the run set's recipe, which says the rest."""
    role: Literal["agent", "base", "instruct"]
    """What is scored: what an agent leaves, or a reference that it is compared with."""
    agent: str
    """Name of the agent in the recipe; of a reference its role."""
    base_model: str
    """Organisation and name."""
    benchmark: str
    """Short name."""
    repetition: int
    """From 0."""
    seed: int
    """That all seeds of the trial are drawn from."""

    def key(self) -> str:
        return "created"
