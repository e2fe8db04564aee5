"""A small run that is complete, for the certificate, and what is wrong with it."""

from collections.abc import Callable

from stepwell.events import RunFinished
from stepwell.events.base import Event
from stepwell.events.run_finished import RunEnd
from stepwell.mlperf.certificate.certify import Certificate, certify
from tests.audited_run import write_run
from tests.book import NOON, Lie, MemoryBook, Told, both, truth
from tests.run_plan import Plan

VALIDATION = {"tasks": 2, "samples": 3, "every": 2, "first": 2, "target": 0.69}
INLINE = Plan(all_end=True, recipe={"validation": VALIDATION})
OFFLINE = Plan(
    all_end=True,
    afterwards=True,
    recipe={"validation": {**VALIDATION, "every": 1, "first": 1, "mode": "offline"}},
)
PASSED = Told(RunFinished, {"end": RunEnd.TARGET})
"""Every validation of a small run is passed: its target is reached."""
LATE = "2026-01-31T12:00:01.000000Z"
EARLY = "2026-01-31T11:59:59.999000Z"
NOON_MS = 1769860800000


def noon(_: str, __: Event) -> str:
    return NOON


async def written(plan: Plan, lie: Lie = truth, clock: Callable[[str, Event], str] = noon) -> MemoryBook:
    book = MemoryBook(lie=both(PASSED, lie), clock=clock)
    await write_run(book, "r", plan)
    return book


async def certified(plan: Plan, lie: Lie = truth, clock: Callable[[str, Event], str] = noon) -> Certificate:
    return certify((await written(plan, lie, clock)).record("r"))


def refused(certificate: Certificate) -> dict[str, str]:
    """First finding of each rule that does not hold."""
    return {result.rule: str(result.findings[0]) for result in certificate.results if result.findings}
