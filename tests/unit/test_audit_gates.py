"""Rules on gates, health, attestations and endings: each catches its own lie."""

from collections.abc import Callable

import pytest

from stepwell.audit.verification import verify
from stepwell.events import (
    HoldRaised,
    OperatorActed,
    RunFinished,
    StallBegan,
    StallEnded,
    UsageRecorded,
    VersionAttested,
)
from stepwell.events.run_finished import RunEnd
from tests.audited_run import write_run
from tests.book import Lie, MemoryBook, Told, acts, dropped, failing
from tests.run_plan import EVENTFUL, Plan


def on(gate: str) -> Callable[[OperatorActed], bool]:
    return lambda event: event.arguments.get("gate") == gate


LIES: list[tuple[str, Plan, Lie, str, str]] = [
    (
        "a version served without an approval",
        EVENTFUL,
        acts(on("publish/1")),
        "gates",
        "version 1 is served: gate publish/1: nobody answered",
    ),
    (
        "a version served though it was rejected",
        EVENTFUL,
        acts(on("publish/2"), action="reject"),
        "gates",
        "version 2 is served: gate publish/2: an operator rejected it",
    ),
    (
        "a gradient out of its band that nobody looked at",
        EVENTFUL,
        acts(on("band/grad_norm/2")),
        "gates",
        "version 2 is served, though grad_norm of step 1 is 2, and gates.grad_norm is [0.0, 1.5]",
    ),
    (
        "a validation without an approval",
        EVENTFUL,
        acts(on("validation/3")),
        "gates",
        "version 3 is validated: gate validation/3: nobody answered",
    ),
    (
        "a score out of its band after which the run goes on",
        EVENTFUL,
        acts(on("band/pass_k/0")),
        "gates",
        "step 0 is dispatched, though pass@k of version 0 is 1",
    ),
    (
        "a score out of its band with which the run ends",
        EVENTFUL,
        acts(on("band/pass_k/3")),
        "gates",
        "the run ends well, though pass@k of version 3 is 1",
    ),
    (
        "a step too small without an approval",
        EVENTFUL,
        acts(on("smaller/1")),
        "gates",
        "step 1 is admitted with 1 prompts, and failures.min_prompts is 2: gate smaller/1: nobody answered",
    ),
    (
        "an answer that was not waited for",
        EVENTFUL,
        dropped(HoldRaised, hold="publish/1"),
        "gates",
        "approve of publish/1, which was not waiting for an answer",
    ),
    (
        "a gate raised a second time",
        EVENTFUL,
        Told(HoldRaised, {"number": 1}, key="hold/publish/1"),
        "gates",
        "raises publish/1 number 1, wanted 0",
    ),
    ("a stall out of turn", Plan(), Told(StallBegan, {"number": 3}), "health", "stall 3 began, wanted stall 0"),
    (
        "a stall that ends without having begun",
        Plan(),
        Told(StallEnded, {"number": 1}),
        "health",
        "stall 1 ended, 1 had begun by then",
    ),
    (
        "usage that falls",
        Plan(),
        Told(UsageRecorded, {"hours": 0.25}, key="usage/1"),
        "health",
        "hours fell from 0.5 to 0.25",
    ),
    (
        "usage out of turn",
        Plan(),
        Told(UsageRecorded, {"number": 4}, key="usage/1"),
        "health",
        "usage 4 recorded, wanted usage 1",
    ),
    (
        "a stop that no operator asked for",
        Plan(),
        Told(RunFinished, {"end": RunEnd.STOPPED}),
        "ending",
        "stopped, but no operator stopped it or rejected a gate",
    ),
    (
        "an attestation that is told twice",
        Plan(),
        Told(VersionAttested, {"load": 0}, key="attest/1"),
        "attestations",
        "load 0 attested after load 0",
    ),
]


@pytest.mark.parametrize(("plan", "lie", "rule", "part"), [lie[1:] for lie in LIES], ids=[lie[0] for lie in LIES])
async def test_a_lie_is_named_by_its_rule_and_by_no_other(plan: Plan, lie: Lie, rule: str, part: str) -> None:
    book = MemoryBook(lie=lie)
    await write_run(book, "r", plan)
    found = failing(verify(book.record("r")))
    assert found.keys() == {rule}, found
    assert part in found[rule]
