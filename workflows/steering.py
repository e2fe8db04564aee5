"""What the two coroutines of a run ask of it: to be held by pauses, and to ask operators."""

from typing import Protocol


class Steering(Protocol):
    """A run as its coroutines see it."""

    async def gate(self, before: str, deeper_than: int, lane: str = "generation") -> None:
        """Holds while a pause is in force that is deeper than this (see `workflows.operator_desk.DEPTH`).

        Args:
            before: what comes next, in words.
            deeper_than: the deepest pause that does not hold here.
            lane: whose wait it is: `generation` or `training`.
        """
        ...

    async def ask(self, gate: str, cause: str, lane: str = "generation") -> bool:
        """Waits for an operator's answer to a gate, unless it was given; True if it was approved. A rejection ends the
        run; the end of the run ends the wait."""
        ...

    async def hold(self, name: str, cause: str) -> None:
        """Records that the run waits for an operator, once."""
        ...

    def show(self) -> None:
        """Writes what the Temporal UI shows of the run."""
        ...
