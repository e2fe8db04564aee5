"""RunFinished."""

from enum import StrEnum
from typing import Literal

from stepwell.events.base import Event


class RunEnd(StrEnum):
    """Why a run ended."""

    TARGET = "target"
    """The target was reached."""
    MAX_STEPS = "max_steps"
    """The recipe's last step is done."""
    STOPPED = "stopped"
    """An operator stopped it."""
    FAILED = "failed"
    """It could not go on; the cause says why."""


class RunFinished(Event):
    """Last event of `run/<run>`."""

    type: Literal["RunFinished"] = "RunFinished"

    end: RunEnd
    """Why."""
    version: int
    """Newest weight version."""
    cause: str = ""
    """In words, for a failure or an operator's stop."""

    def key(self) -> str:
        return "finished"
