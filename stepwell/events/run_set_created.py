"""RunSetCreated."""

from typing import Any, Literal

from stepwell.events.base import Event


class RunSetCreated(Event):
    """A set of trials began. First event of `run-set/<run set>`; every trial of it is decided by this."""

    type: Literal["RunSetCreated"] = "RunSetCreated"

    recipe: dict[str, Any]
    """The resolved recipe, every key."""
    recipe_digest: str
    """Digest of its canonical JSON: the same command finds the run set again by it."""
    cells: list[str]
    """Names of all trials, in the order in which they are started."""
    basis: dict[str, Any]
    """What all its scores are made on (`stepwell.ptb.leaderboard.records.Basis`)."""
    digests: dict[str, str]
    """Of what lies in folders and files here, by what it is: `base/<model>`, `instruct/<model>`, `benchmark/<name>`,
    `regime`, `mount/<at>`, `mount/<agent>/<at>`."""

    def key(self) -> str:
        return "created"
