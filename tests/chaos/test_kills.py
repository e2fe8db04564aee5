"""Ctrl-C in the middle of a run: it stops cleanly, and the same command goes on to the same end.

Kills of each worker at each kind of event are in test_every_event.py.
"""

from collections.abc import Callable, Iterable

import pytest

from db.recorded import Recorded
from stepwell.events import RolloutEnded, TurnRecorded
from tests.stack.tiny_run import Start

pytestmark = pytest.mark.timeout(600)


def in_a_rollout_of(step: int) -> Callable[[list[Recorded]], bool]:
    """A turn of a rollout of the step is recorded, and some rollout of it has not ended."""

    def happened(events: Iterable[Recorded]) -> bool:
        of_step = [each.event for each in events if f"/{step}/" in each.stream and each.stream.startswith("rollout")]
        turns = sum(isinstance(event, TurnRecorded) for event in of_step)
        ended = sum(isinstance(event, RolloutEnded) for event in of_step)
        return turns > 0 and ended < 8

    return happened


async def test_ctrl_c_stops_cleanly_and_the_same_command_goes_on(
    start_run: Start, undisturbed: dict[str, object]
) -> None:
    run = start_run("left")
    await run.until(in_a_rollout_of(0))
    assert await run.interrupt() == 1
    assert "goes on with it" in run.output
    assert run.leftovers() == []
    run.start()
    assert await run.finish() == 0, run.output
    assert await run.outcome() == undisturbed
