"""How deep a run is paused: asked before each turn, answered from the ledger, believed for half a second."""

import time
from dataclasses import dataclass, field

from db.ledger import Ledger
from stepwell.contracts.operators import Pause
from stepwell.events.streams import operator_stream
from stepwell.operators.fold import fold_operators

BELIEVED_S = 0.5
"""Longest that a rollout goes on after a pause was recorded, its turn under way apart."""


class Held(Exception):
    """An operator's pause, or a limit that was reached, forbids the next turn."""


@dataclass
class Holds:
    """Pauses of the runs that this process works for."""

    ledger: Ledger
    _seen: dict[str, tuple[float, Pause | None]] = field(default_factory=dict[str, tuple[float, Pause | None]])

    async def depth(self, run: str) -> Pause | None:
        """The deepest pause in force.

        Raises:
            DatabaseUnavailable: no answer: the caller does not know whether it may go on.
        """
        now = time.monotonic()
        at, depth = self._seen.get(run, (-BELIEVED_S, None))
        if now - at >= BELIEVED_S:
            recorded = await self.ledger.read(operator_stream(run))
            depth = fold_operators([each.event for each in recorded]).depth
            self._seen[run] = (now, depth)
        return depth
