"""SIGKILL of each worker in the middle of its work: the run ends as an undisturbed one does, to the bit."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import pytest_asyncio

from db.ledger import Ledger
from db.recorded import Recorded
from stepwell.events import AttemptOpened, RolloutEnded, StepAdmitted, StepTrained, TurnRecorded
from tests.stack.tiny_run import Start, TinyRun
from workers.services.addresses import Addresses

pytestmark = pytest.mark.timeout(600)


def in_a_rollout_of(step: int) -> Callable[[list[Recorded]], bool]:
    """A turn of a rollout of the step is recorded, and some rollout of it has not ended."""

    def happened(events: Iterable[Recorded]) -> bool:
        of_step = [each.event for each in events if f"/{step}/" in each.stream and each.stream.startswith("rollout")]
        turns = sum(isinstance(event, TurnRecorded) for event in of_step)
        ended = sum(isinstance(event, RolloutEnded) for event in of_step)
        return turns > 0 and ended < 8

    return happened


def training(step: int) -> Callable[[list[Recorded]], bool]:
    """The step's batch is fixed, and its version not made."""

    def happened(events: Iterable[Recorded]) -> bool:
        kinds = [(type(each.event), getattr(each.event, "step", None)) for each in events]
        return (StepAdmitted, step) in kinds and (StepTrained, step) not in kinds

    return happened


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def undisturbed(
    services: Addresses, services_home: Path, ledger: Ledger, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, object]:
    """What the run does when nobody kills anything."""
    run = TinyRun("undisturbed", services_home, ledger, tmp_path_factory.mktemp("undisturbed"))
    try:
        run.start()
        assert await run.finish() == 0, run.output
        return await run.outcome()
    finally:
        run.kill()


@pytest.mark.parametrize(
    ("kind", "moment"),
    [
        ("sandbox", in_a_rollout_of(0)),
        ("engine", in_a_rollout_of(1)),
        ("control", in_a_rollout_of(0)),
        ("trainer", training(1)),
    ],
    ids=["sandbox", "engine", "control", "trainer"],
)
async def test_run_ends_as_undisturbed_after_sigkill(
    kind: str,
    moment: Callable[[list[Recorded]], bool],
    undisturbed: dict[str, object],
    start_run: Start,
    services_home: Path,
) -> None:
    run = start_run(f"kill-{kind}")
    await run.until(moment)
    run.worker(kind).kill()
    assert await run.finish() == 0, run.output
    assert f"worker {kind}" in run.output
    assert await run.outcome() == undisturbed
    verified = run.verify()
    assert verified.returncode == 0, verified.stdout
    assert run.leftovers() == []
    left = [folder for kind in (services_home / "cache").iterdir() for folder in kind.iterdir()]
    assert left == []


async def test_no_recorded_turn_is_generated_again(undisturbed: dict[str, object], start_run: Start) -> None:
    run = start_run("retaken")
    await run.until(in_a_rollout_of(0))
    run.worker("sandbox").kill()
    assert await run.finish() == 0, run.output
    events = await run.events()
    retaken = [each for each in events if isinstance(each.event, AttemptOpened) and each.event.resumed_at > 0]
    assert retaken, "the kill hit no rollout with a recorded turn"
    for attempt in retaken:
        turns = [
            each.event.turn
            for each in events
            if each.stream == attempt.stream and isinstance(each.event, TurnRecorded) and each.seq > attempt.seq
        ]
        assert all(turn >= attempt.event.resumed_at for turn in turns)


async def test_ctrl_c_stops_cleanly_and_the_same_command_goes_on(
    undisturbed: dict[str, object], start_run: Start
) -> None:
    run = start_run("left")
    await run.until(in_a_rollout_of(0))
    assert await run.interrupt() == 1
    assert "goes on with it" in run.output
    assert run.leftovers() == []
    run.start()
    assert await run.finish() == 0, run.output
    assert await run.outcome() == undisturbed
