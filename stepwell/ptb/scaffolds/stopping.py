"""Why an agent's program stopped: by its exit status and by what its trace says."""

from dataclasses import dataclass
from typing import Literal

from stepwell.ptb.scaffolds.scaffold import PASSING, Scaffold
from stepwell.ptb.traces import LimitKind, TraceSummary


@dataclass(frozen=True)
class Stop:
    """Why it stopped, where nobody stopped it."""

    kind: Literal["itself", "limit", "crash"]
    """`itself`: it was done; `limit`: its provider or its own settings let it do no more; `crash`: anything else."""
    limit: LimitKind | None
    """Which limit."""
    why: str
    """In words."""

    @property
    def may_go_on(self) -> bool:
        """Whether telling it to go on can help: it was done, or was told to wait."""
        return self.kind == "itself" or self.limit in PASSING


def stop_of(scaffold: Scaffold, exit_status: int | None, summary: TraceSummary) -> Stop:
    """Why a program stopped by itself. Not for one that was ended from outside.

    Args:
        scaffold: Its declaration.
        exit_status: Of the program; negative for a signal; None if it is not known.
        summary: Of its trace.
    """
    declared = next((each for each in scaffold.exits if each.status == exit_status), None)
    limit = summary.ended_by or (declared.limit if declared else None)
    if limit is not None:
        return Stop("limit", limit, declared.means if declared else f"its trace ends with a limit: {limit}")
    if exit_status != 0:
        said = "was ended by a signal" if (exit_status or 0) < 0 else f"ended with status {exit_status}"
        return Stop("crash", None, declared.means if declared else said)
    if summary.ended == "failed":
        return Stop("crash", None, "its trace ends with a failure, although its status is 0")
    # A program of the recipe's own says nothing of its end.
    if summary.ended == "cut off" and scaffold.trace.format != "lines":
        return Stop("crash", None, "its trace has no end, although its status is 0")
    return Stop("itself", None, "it was done")
