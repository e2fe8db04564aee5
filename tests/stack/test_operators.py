"""Operators steer a run that trains: each act against the real workflow, the ledger looked at afterwards."""

import asyncio
from collections.abc import Callable

import pytest

from db.ledger import Ledger
from db.recorded import Recorded
from stepwell.contracts.operators import (
    GateNote,
    LimitNote,
    OperatorNote,
    PauseNote,
    SettingNote,
    SkipNote,
    StopNote,
)
from stepwell.events import (
    GroupClosed,
    OperatorActed,
    RolloutFailed,
    RunFinished,
    StepDispatched,
    StepTrained,
    TurnRecorded,
    ValidationRecorded,
)
from stepwell.events.base import Event
from stepwell.events.group_closed import Fate
from stepwell.events.streams import operator_stream, prompt_stream, run_stream, weights_stream
from tests.stack.steering import WHO, Helm
from tests.stack.tiny_run import Start, TinyRun

pytestmark = pytest.mark.timeout(400)


def turns(events: list[Recorded]) -> int:
    """Turns recorded so far."""
    return sum(isinstance(each.event, TurnRecorded) for each in events)


def first_turn(events: list[Recorded]) -> bool:
    return turns(events) > 0


async def of_type(ledger: Ledger, stream: str, kind: type[Event]) -> list[Event]:
    """A stream's events of one type."""
    return [each.event for each in await ledger.read(stream) if isinstance(each.event, kind)]


async def test_a_run_is_held_at_the_turn_drained_steered_and_stopped(
    start_run: Start, helm: Helm, ledger: Ledger
) -> None:
    run = start_run("steered", "run.max_steps=200")
    await run.until(first_turn)

    await _hold_at_the_turn(run, helm)
    await _drain(run, helm)
    step = await _set_and_skip(run, helm)
    await _limit_steps(run, helm, step + 4)

    answer = await helm.ask(run.name, "stop", StopNote(reason="wrong recipe"))
    assert answer.state == "stopping"
    assert "sooner" in await helm.refusal(run.name, "stop", StopNote(reason="again", at="validation"))
    assert await run.finish() == 0, run.output
    assert "wrong recipe" in run.output
    assert run.verify().returncode == 0

    await _settings_held_from_the_next_step(run, ledger)
    skipped = await of_type(ledger, prompt_stream(run.name, str(step + 2), 1), GroupClosed)
    assert [(each.fate, each.cause) for each in skipped if isinstance(each, GroupClosed)] == [
        (Fate.SKIPPED, "its tests are wrong")
    ]
    acts = await of_type(ledger, operator_stream(run.name), OperatorActed)
    assert [(act.action, act.who) for act in acts if isinstance(act, OperatorActed)] == [
        (action, WHO)
        for action in ("pause", "resume", "drain", "resume", "set", "set", "skip", "limit", "limit", "stop")
    ]


async def _hold_at_the_turn(run: TinyRun, helm: Helm) -> None:
    assert "a reason is needed" in await helm.refusal(run.name, "pause", PauseNote(reason=" "))
    assert "not paused" in await helm.refusal(run.name, "resume", OperatorNote())
    assert (await helm.ask(run.name, "pause", PauseNote(reason="the disk is replaced"))).state == "paused"
    assert "paused already" in await helm.refusal(run.name, "pause", PauseNote(reason="again", at="step"))
    await asyncio.sleep(2.0)  # a turn under way may end, and be recorded
    before = turns(await run.events())
    await asyncio.sleep(3.0)
    assert turns(await run.events()) == before, "a paused run begins no turn"
    assert (await helm.ask(run.name, "resume", OperatorNote())).state == "running"
    await run.until(lambda events: turns(events) > before)


async def _drain(run: TinyRun, helm: Helm) -> None:
    assert (await helm.ask(run.name, "drain", OperatorNote(reason="the host is rebooted"))).state in (
        "draining",
        "drained",
    )
    await _quiet(run)
    assert (await helm.progress(run.name)).state in ("draining", "drained")
    await helm.ask(run.name, "resume", OperatorNote(reason="the host is back"))


async def _quiet(run: TinyRun) -> None:
    """Waits until nothing more is recorded: three seconds without a new event."""
    for _ in range(20):
        before = len(await run.events())
        await asyncio.sleep(3.0)
        if len(await run.events()) == before:
            return
    raise AssertionError("a drained run goes on and on")


async def _set_and_skip(run: TinyRun, helm: Helm) -> int:
    """Changes two keys, and takes a prompt of a step to come out; the step that was being generated."""
    unknown = await helm.refusal(run.name, "set", SettingNote(reason="x", key="optimiser.learning_rat", value=1e-4))
    assert "did you mean 'optimiser.learning_rate'" in unknown
    assert "greater than 0" in await helm.refusal(
        run.name, "set", SettingNote(reason="x", key="optimiser.learning_rate", value=-1)
    )
    await helm.ask(run.name, "set", SettingNote(reason="slower", key="optimiser.learning_rate", value=5e-4))
    answer = await helm.ask(run.name, "set", SettingNote(reason="exact", key="run.max_staleness", value=0))
    assert answer.settings == {"optimiser.learning_rate": 5e-4, "run.max_staleness": 0}
    step = answer.generating
    assert "prompts 0 to 1" in await helm.refusal(run.name, "skip", SkipNote(reason="x", step=step + 2, prompt=7))
    assert "cannot be changed" in await helm.refusal(run.name, "skip", SkipNote(reason="x", step=900, prompt=0))
    await helm.ask(run.name, "skip", SkipNote(reason="its tests are wrong", step=step + 2, prompt=1))
    return step


async def _limit_steps(run: TinyRun, helm: Helm, steps: int) -> None:
    await helm.ask(run.name, "limit", LimitNote(reason="the night ends", limit="steps", value=steps))
    held = await helm.until(run, lambda progress: bool(progress.holds))
    assert held.holds[0].hold == "limit/steps"
    assert "move it with `limit steps" in await helm.refusal(run.name, "resume", OperatorNote())
    assert "is a limit" in await helm.refusal(run.name, "approve", GateNote(reason="x", gate="limit/steps"))
    dispatched = [each.event for each in await run.events() if isinstance(each.event, StepDispatched)]
    assert len(dispatched) == steps
    moved = await helm.ask(run.name, "limit", LimitNote(reason="one more hour", limit="steps", value=None))
    assert moved.holds == ()
    await run.until(lambda events: sum(isinstance(each.event, StepDispatched) for each in events) > steps)


async def _settings_held_from_the_next_step(run: TinyRun, ledger: Ledger) -> None:
    dispatched = [
        each for each in await of_type(ledger, run_stream(run.name), StepDispatched) if isinstance(each, StepDispatched)
    ]
    rates = {
        each.step: each.metrics["learning_rate"]
        for each in await of_type(ledger, weights_stream(run.name), StepTrained)
        if isinstance(each, StepTrained)
    }
    assert dispatched[0].settings == {}
    assert dispatched[-1].settings == {"optimiser.learning_rate": 5e-4, "run.max_staleness": 0}
    for each in dispatched:
        stale = 0 if "run.max_staleness" in each.settings else 1
        assert each.version == max(0, each.step - stale)
        if each.step in rates:
            assert rates[each.step] == each.settings.get("optimiser.learning_rate", 1e-3)


async def test_gates_ask_before_a_version_is_served_and_a_rejection_stops_the_run(
    start_run: Start, helm: Helm, ledger: Ledger
) -> None:
    run = start_run("gated", "run.max_steps=9", "gates.publish=true", "gates.grad_norm=[0.0,1e-9]")

    async def asked(gate: str) -> None:
        progress = await helm.until(run, lambda progress: any(hold.hold == gate for hold in progress.holds))
        assert progress.state == "waiting"

    await asked("band/grad_norm/1")
    assert "no gate 'publish/1' is open" in await helm.refusal(
        run.name, "approve", GateNote(reason="x", gate="publish/1")
    )
    await helm.ask(run.name, "approve", GateNote(reason="the first step is large", gate="band/grad_norm/1"))
    await asked("publish/1")
    await helm.ask(run.name, "approve", GateNote(reason="seen", gate="publish/1"))
    await asked("band/grad_norm/2")
    await helm.ask(run.name, "reject", GateNote(reason="it diverges", gate="band/grad_norm/2"))
    assert await run.finish() == 0, run.output
    finished = await of_type(ledger, run_stream(run.name), RunFinished)
    assert [(each.end, each.cause) for each in finished if isinstance(each, RunFinished)] == [
        ("stopped", "band/grad_norm/2 was rejected: it diverges")
    ]
    assert run.verify().returncode == 0


async def test_a_stop_at_once_gives_every_dispatched_prompt_its_fate(
    start_run: Start, helm: Helm, ledger: Ledger
) -> None:
    run = start_run("halted", "run.max_steps=200", "run.prompts_per_step=6", "run.groups_in_flight=2")
    await run.until(in_step(1))
    progress = await helm.ask(run.name, "stop", StopNote(reason="a power cut is near", at="now"))
    assert progress.state == "stopping"
    assert await run.finish() == 0, run.output
    dispatched = [
        each for each in await of_type(ledger, run_stream(run.name), StepDispatched) if isinstance(each, StepDispatched)
    ]
    fates = [
        closed.fate
        for each in dispatched
        for prompt in range(len(each.tasks))
        for closed in await of_type(ledger, prompt_stream(run.name, str(each.step), prompt), GroupClosed)
        if isinstance(closed, GroupClosed)
    ]
    assert len(fates) == 6 * len(dispatched)
    assert Fate.SKIPPED in fates
    assert run.verify().returncode == 0, run.verify().stdout


def in_step(step: int) -> Callable[[list[Recorded]], bool]:
    """A turn of the step is recorded."""

    def happened(events: list[Recorded]) -> bool:
        return any(isinstance(each.event, TurnRecorded) and f"/{step}/" in each.stream for each in events)

    return happened


async def test_a_limit_holds_the_run_an_open_prompt_is_skipped_and_a_stop_validates_what_was_made(
    start_run: Start, helm: Helm, ledger: Ledger
) -> None:
    run = start_run("farewell", "run.max_steps=20", "run.prompts_per_step=20", "limits.generated_tokens=150")
    held = await helm.until(run, lambda progress: bool(progress.holds))
    assert held.holds[0].hold == "limit/generated_tokens"
    assert "the limit is 150" in held.holds[0].cause
    assert held.state == "paused"

    step = str(held.generating)
    streams = [await ledger.read(prompt_stream(run.name, step, prompt)) for prompt in range(20)]
    still_open = [prompt for prompt in range(20) if not isinstance(streams[prompt][-1].event, GroupClosed)]
    rollouts = {each: await ledger.read_prefix(f"rollout/{run.name}/{step}/{each}/") for each in still_open}
    # The one that is least far: of another all rollouts may be at their end, though the group is not closed.
    skipped = min(still_open, key=lambda prompt: len(rollouts[prompt]))
    await helm.ask(run.name, "skip", SkipNote(reason="it leaks", step=held.generating, prompt=skipped))
    await helm.ask(run.name, "limit", LimitNote(reason="more is allowed", limit="generated_tokens", value=None))
    await helm.ask(run.name, "stop", StopNote(reason="the budget ends", at="validation"))
    assert await run.finish() == 0, run.output

    closed = await of_type(ledger, prompt_stream(run.name, step, skipped), GroupClosed)
    assert [each.fate for each in closed if isinstance(each, GroupClosed)] == [Fate.SKIPPED]
    failed = await ledger.read_prefix(f"rollout/{run.name}/{step}/{skipped}/")
    assert {each.event.failure for each in failed if isinstance(each.event, RolloutFailed)} == {"operator"}
    newest = await of_type(ledger, weights_stream(run.name), StepTrained)
    validated = await of_type(ledger, run_stream(run.name), ValidationRecorded)
    assert [each.version for each in validated if isinstance(each, ValidationRecorded)][-1] == len(newest)
    assert run.verify().returncode == 0, run.verify().stdout
