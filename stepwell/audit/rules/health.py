"""What the run's watcher recorded fits together: stalls end after they began, and what was used only grows."""

from stepwell.audit.finding import Tally
from stepwell.audit.record import RunRecord, StreamRecord
from stepwell.events import StallBegan, StallEnded, UsageRecorded
from stepwell.events.streams import health_stream

HOLDS = "stalls are numbered and end once, after they began; recorded usage never falls"
UNIT = "stalls and records of usage"


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule to `health/<run>`."""
    stream = record.streams.get(health_stream(record.run))
    if stream is None:
        return
    _check_stalls(stream, tally)
    _check_usage(stream, tally)


def _check_stalls(stream: StreamRecord, tally: Tally) -> None:
    begun = 0
    for seq, event in stream.events:
        if isinstance(event, StallBegan):
            tally.expect(event.number == begun, stream.name, seq, f"stall {event.number} began, wanted stall {begun}")
            begun += 1
        elif isinstance(event, StallEnded):
            tally.expect(
                0 <= event.number < begun, stream.name, seq, f"stall {event.number} ended, {begun} had begun by then"
            )


def _check_usage(stream: StreamRecord, tally: Tally) -> None:
    before: UsageRecorded | None = None
    for wanted, (seq, usage) in enumerate(stream.every(UsageRecorded)):
        tally.expect(usage.number == wanted, stream.name, seq, f"usage {usage.number} recorded, wanted usage {wanted}")
        for name in ("hours", "gpu_hours", "generated_tokens", "sandbox_minutes"):
            then, now = getattr(before, name) if before else 0, getattr(usage, name)
            tally.expect(now >= then, stream.name, seq, f"{name} fell from {then} to {now}")
        before = usage
