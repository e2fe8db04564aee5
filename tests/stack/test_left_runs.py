"""A run that was left in the middle, with another one on the same servers and sandbox workers."""

import pytest

from db.ledger import Ledger
from stepwell.contracts.operators import StopNote
from stepwell.events import RolloutFailed
from tests.chaos.test_kills import in_a_rollout_of
from tests.stack.steering import Helm
from tests.stack.tiny_run import Start

pytestmark = pytest.mark.timeout(600)


async def test_a_left_run_without_engines_does_not_hold_another_and_loses_nothing(
    start_run: Start, undisturbed: dict[str, object], helm: Helm, ledger: Ledger
) -> None:
    left = start_run("left-behind", "run.max_steps=20", "run.prompts_per_step=4", "validation.every=50")
    await left.until(in_a_rollout_of(0))
    left.kill()

    other = start_run("beside")
    assert await other.finish() == 0, other.output
    assert await other.outcome() == undisturbed

    left.start()
    await helm.until(left, lambda progress: progress.version > 0)
    await helm.ask(left.name, "stop", StopNote(reason="it went on", at="step"))
    assert await left.finish() == 0, left.output
    rollouts = await ledger.read_prefix(f"rollout/{left.name}/")
    assert not [each for each in rollouts if isinstance(each.event, RolloutFailed)]
    assert left.verify().returncode == 0, left.verify().stdout
