"""Prompts that fail: replaced from the reserve, or left out of a step that is smaller, never scored."""

import pytest

from db.ledger import Ledger
from stepwell.contracts.operators import GateNote, StopNote
from stepwell.events import GroupClosed, PromptReplaced, RolloutFailed, StepAdmitted, StepTrained
from stepwell.events.group_closed import Fate
from stepwell.events.streams import prompt_stream, run_stream, weights_stream
from tests.stack.steering import Helm
from tests.stack.tiny_run import Start

pytestmark = pytest.mark.timeout(400)


async def test_prompts_that_do_not_fit_are_quarantined_and_replaced_while_the_reserve_lasts(
    start_run: Start, ledger: Ledger
) -> None:
    run = start_run("reserve", "agent.max_context_tokens=21", "failures.reserve=3", "validation.tasks=1", *UNVALIDATED)
    assert await run.finish() == 0, run.output
    events = [each.event for each in await ledger.read(run_stream(run.name))]
    replaced = [event for event in events if isinstance(event, PromptReplaced)]
    assert replaced, run.output
    for event in replaced:
        closing = (await ledger.read(prompt_stream(run.name, str(event.step), event.replaces)))[-1].event
        assert isinstance(closing, GroupClosed)
        assert closing.fate is Fate.QUARANTINED
        assert "context" in closing.cause
        assert closing.scores == [None] * 4
    assert replaced[0].prompt == 2
    assert run.verify().returncode == 0, run.verify().stdout


async def test_a_group_that_does_not_end_is_closed_by_its_deadline_and_an_operator_is_asked(
    start_run: Start, helm: Helm, ledger: Ledger
) -> None:
    run = start_run("deadline", "failures.group_timeout_s=0.4", *UNVALIDATED)
    asked = await helm.until(run.name, lambda progress: bool(progress.holds))
    assert asked.holds[0].hold == "smaller/0"
    assert "group_timeout_s = 0.4" in asked.holds[0].cause
    await helm.ask(run.name, "approve", GateNote(reason="known", gate="smaller/0"))
    await helm.until(run.name, lambda progress: any(hold.hold == "smaller/1" for hold in progress.holds))
    await helm.ask(run.name, "stop", StopNote(reason="seen enough", at="now"))
    assert await run.finish() == 0, run.output
    admitted = [each.event for each in await ledger.read(run_stream(run.name)) if isinstance(each.event, StepAdmitted)]
    assert [(event.step, event.rollouts) for event in admitted] == [(0, 0)]
    versions = [each.event for each in await ledger.read(weights_stream(run.name))]
    trained = [event for event in versions if isinstance(event, StepTrained)]
    assert [event.metrics["grad_norm"] for event in trained] == [0.0]
    failed = await ledger.read(f"rollout/{run.name}/0/0/0")
    assert isinstance(failed[-1].event, RolloutFailed)
    assert failed[-1].event.failure == "infra"
    assert run.verify().returncode == 0, run.verify().stdout


UNVALIDATED = ("validation.every=50",)
"""No version of a short run is validated, but the last."""
