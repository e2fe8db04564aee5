"""What one run records, as it comes: its usage is counted from it, and it tells whether the run gets on."""

from db.ledger import Ledger
from db.recorded import Position
from stepwell.events import AttemptOpened, EngineStarted, RolloutGraded
from stepwell.events.base import Event
from stepwell.events.streams import verdict_stream

_PAGE = 2000
"""Events asked for at once."""
_PAGES = 5
"""Pages a look: a long backlog is counted over several looks, between which the watcher sees to the rest."""
_OTHERS = ("run", "weights", "engine")
"""Kinds of streams in which a run gets on while no rollout does."""


class UsageFeed:
    """Reads on from a position of the ledger's feed.

    A verdict counts for the run whose rollouts it was reached for, once: rollouts that arrived at one tree are told of
    their verdict right after each other, so it is enough to know those that were counted lately.

    Args:
        ledger: of the run.
        run: its name.
        position: up to which events are counted already.
    """

    def __init__(self, ledger: Ledger, run: str, position: Position) -> None:
        self._ledger = ledger
        self._run = run
        self._lately: set[str] = set()
        self.position = position
        """Up to which events were given out."""
        self.gets_on = False
        """Whether the run got on between the last two looks: to begin again is not to get on."""

    async def take(self) -> list[Event]:
        """Events of rollouts since the last call, and the verdicts that were reached for them.

        Raises:
            DatabaseUnavailable: no connection.
        """
        before, taken = self.position, list[Event]()
        for _ in range(_PAGES):
            page = await self._ledger.read_after(self.position, f"rollout/{self._run}/", _PAGE)
            events = [recorded.event for recorded in page.events]
            taken += events + await self._verdicts(events)
            self.position = page.position
            if len(events) < _PAGE:
                break
        self.gets_on = _gets_on(taken) or await self._others_get_on(before)
        return taken

    async def _verdicts(self, events: list[Event]) -> list[Event]:
        keys = {event.verdict_key for event in events if isinstance(event, RolloutGraded) and not event.reused}
        if not keys:
            return []
        new, self._lately = keys - self._lately, keys
        streams = await self._ledger.read_many(verdict_stream(key) for key in sorted(new))
        return [recorded.event for stream in streams.values() for recorded in stream]

    async def _others_get_on(self, before: Position) -> bool:
        for kind in _OTHERS:
            own = f"{kind}/{self._run}"
            page = await self._ledger.read_after(before, own, _PAGE)
            if _gets_on([each.event for each in page.events if f"{each.stream}/".startswith(f"{own}/")]):
                return True
        return False


def _gets_on(events: list[Event]) -> bool:
    return any(not isinstance(event, AttemptOpened | EngineStarted) for event in events)
