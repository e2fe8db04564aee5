"""What a run used stays within its limits, or it was held: limits, holds and recorded usage fit together.

Usage, limits and steps stand in three streams, which have no common order. So a limit counts here as the widest that
was ever in force, by the recipe or by an operator; what it forbids was never allowed. A pause does not stop the clock,
and what is under way when a limit is reached goes on to its next turn, so usage may pass a limit: then a hold was
raised, at the latest when usage was recorded twice more (it is recorded once a minute).
"""

from collections.abc import Mapping

from stepwell.audit.finding import Finding, Tally
from stepwell.audit.record import RunRecord
from stepwell.events import HoldRaised, OperatorActed, UsageRecorded
from stepwell.events.streams import health_stream
from stepwell.health.usage import MEASURES, amount_words

HOLDS = (
    "no step was begun beyond the widest limit, usage that reached one raised a hold, and no more tokens are counted"
)
UNIT = "limits, steps and records of usage"

RECORDS_LATER = 2
"""Records of usage after the first that reaches a limit by which its hold was raised."""


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule to steps, holds and usage."""
    if record.recipe is None:
        return  # the rule `settings` says so
    limits = _every_limit(record)
    _check_steps(record, limits, tally)
    _check_holds(record, limits, tally)
    stream = record.streams.get(health_stream(record.run))
    usages = stream.every(UsageRecorded) if stream else []
    raised = {event.hold for _, event in record.operators.every(HoldRaised)}
    for name in MEASURES:
        widest = _widest(limits[name])
        reached = [] if widest is None else [seq for seq, usage in usages if getattr(usage, name) >= widest]
        tally.expect(
            f"limit/{name}" in raised or len(reached) <= RECORDS_LATER,
            health_stream(record.run),
            reached[0] if reached else None,
            f"{name} reached {amount_words(widest or 0)}, the widest limit that was in force, and no hold was raised",
        )
    _check_tokens(record, usages, tally)


def _every_limit(record: RunRecord) -> Mapping[str, list[float | None]]:
    """Of each limit, those that were in force, in order; None: no limit."""
    assert record.recipe is not None
    limits: dict[str, list[float | None]] = {name: [value] for name, value in record.recipe.limits}
    for _, act in record.operators.every(OperatorActed):
        name, value = act.arguments.get("limit"), act.arguments.get("value")
        if act.action == "limit" and isinstance(name, str) and not isinstance(value, str):
            limits.setdefault(name, []).append(value)
    return limits


def _widest(limits: list[float | None]) -> float | None:
    known = [limit for limit in limits if limit is not None]
    return max(known) if len(known) == len(limits) else None


def _check_steps(record: RunRecord, limits: Mapping[str, list[float | None]], tally: Tally) -> None:
    widest = _widest(limits["steps"])
    for step in record.steps.values():
        is_within = widest is None or step.event.step < widest
        what = f"step {step.event.step} was begun, though at most {widest or 0:g} steps were ever allowed"
        tally.expect(is_within, record.run_events.name, step.seq, what)


def _check_holds(record: RunRecord, limits: Mapping[str, list[float | None]], tally: Tally) -> None:
    for seq, event in record.operators.every(HoldRaised):
        kind, _, name = event.hold.partition("/")
        if kind == "limit":
            is_set = any(limit is not None for limit in limits.get(name, []))
            tally.expect(is_set, record.operators.name, seq, f"held by {event.hold}, which nobody had set")


def _check_tokens(record: RunRecord, usages: list[tuple[int, UsageRecorded]], tally: Tally) -> None:
    """Usage counts turns that were recorded, those of epochs that were started over too."""
    if any(fault.stream.startswith("rollout/") for fault in record.faults):
        return  # turns are missing: the rule `chains` says which
    recorded = sum(turn.generated_tokens for rollout in record.of_kind("rollout") for turn in rollout.turns)
    for seq, usage in usages:
        tally.checked += 1
        if usage.generated_tokens > recorded:
            what = f"counts {usage.generated_tokens:,} generated tokens, recorded are {recorded:,}"
            tally.findings.append(Finding(health_stream(record.run), seq, what))
