"""Limits held the run, usage is what was recorded, and operators' acts are such as can be asked."""

from typing import Any

import pytest

from stepwell.audit.finding import Tally
from stepwell.audit.record import RecordBuilder
from stepwell.audit.rules import budgets
from stepwell.audit.verification import verify
from stepwell.events import HoldRaised, OperatorActed, RunCreated, StepDispatched, UsageRecorded
from stepwell.events.base import Event
from tests.audited_run import write_run
from tests.book import Lie, MemoryBook, Told, acts, failing, truth
from tests.run_plan import EVENTFUL, Plan
from tests.told import DIGEST, told

RUN = {"max_steps": 9, "prompts_per_step": 1, "samples_per_prompt": 2}


async def audited(lie: Lie = truth, plan: Plan = EVENTFUL) -> dict[str, str]:
    """First finding of each rule that fails."""
    book = MemoryBook(lie=lie)
    await write_run(book, "r", plan)
    return failing(verify(book.record("r")))


def budgeted(limits: dict[str, Any], **streams: list[Event]) -> list[str]:
    """What the rule finds in streams made by hand."""
    builder = RecordBuilder("r")
    created = told(RunCreated, recipe={"run": RUN, "limits": limits})
    for kind, events in {"run": [created, *streams.pop("run", [])], **streams}.items():
        builder.add(f"{kind}/r", events, [f"{seq:064}" for seq in range(len(events))])
    record = builder.build(named_blobs={}, blob_faults={}, documents={})
    tally = Tally()
    budgets.check(record, tally)
    assert tally.checked
    return [str(finding) for finding in tally.findings]


def used(*hours: float) -> list[Event]:
    return [told(UsageRecorded, number=number, hours=at, generated_tokens=0) for number, at in enumerate(hours)]


def act(number: int, **arguments: str | float | None) -> Event:
    return told(OperatorActed, action="limit", arguments=arguments, update=f"u{number}")


def step(number: int) -> Event:
    return told(StepDispatched, step=number, version=number, tasks=[DIGEST])


def test_a_step_beyond_the_limit_of_steps_is_found() -> None:
    steps = [step(0), step(1), step(2)]
    assert budgeted({"steps": 3}, run=steps) == []
    assert budgeted({"steps": 2}, run=steps) == ["run/r #3: step 2 was begun, though at most 2 steps were ever allowed"]


@pytest.mark.parametrize("value", [3, None])
def test_a_limit_that_an_operator_moved_counts_as_moved(value: int | None) -> None:
    moved = [act(0, limit="steps", value=value)]
    assert budgeted({"steps": 2}, run=[step(0), step(1), step(2)], operator=moved) == []


def test_usage_that_reaches_a_limit_has_its_hold_when_it_is_recorded_twice_more() -> None:
    assert budgeted({"hours": 1.0}, health=used(0.5, 1.1, 1.2)) == []
    found = budgeted({"hours": 1.0}, health=used(0.5, 1.1, 1.2, 1.3))
    assert found == ["health/r #1: hours reached 1, the widest limit that was in force, and no hold was raised"]
    held = [told(HoldRaised, hold="limit/hours")]
    assert budgeted({"hours": 1.0}, health=used(0.5, 1.1, 1.2, 1.3), operator=held) == []
    moved = [act(0, limit="hours", value=2.0)]
    assert budgeted({"hours": 1.0}, health=used(0.5, 1.1, 1.2, 1.3), operator=moved) == []


def test_a_hold_for_a_limit_that_nobody_set_is_found() -> None:
    held = [told(HoldRaised, hold="limit/hours")]
    assert budgeted({}, operator=held) == ["operator/r #0: held by limit/hours, which nobody had set"]
    assert budgeted({}, operator=[act(0, limit="hours", value=1.0), *held]) == []


async def test_more_tokens_than_were_recorded_are_found() -> None:
    found = await audited(Told(UsageRecorded, {"generated_tokens": 10_000}, key="usage/1"))
    assert found["budgets"].startswith("health/r #3: counts 10,000 generated tokens, recorded are ")


SKIP, SET, APPROVE = (lambda act, of=of: act.action == of for of in ("skip", "set", "approve"))


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        (acts(APPROVE, who=" "), "approve by nobody"),
        (acts(APPROVE, reason=""), "approve by ann@host without a reason"),
        (acts(APPROVE, arguments={"gates": "publish/1"}), "approve cannot be asked with {'gates': 'publish/1'}"),
        (acts(SKIP, arguments={"step": 1, "prompt": 7}), "skips prompt 7 of step 1; there are steps 0 to 2"),
        (acts(SKIP, arguments={"step": 3, "prompt": 0}), "skips prompt 0 of step 3; there are steps 0 to 2"),
        (acts(SET, action="limit", arguments={"limit": "hours", "value": 0}), "limit hours = 0: a limit is above 0"),
    ],
)
async def test_an_act_that_could_not_be_asked_is_found(lie: Lie, said: str) -> None:
    assert said in (await audited(lie))["operators"]
