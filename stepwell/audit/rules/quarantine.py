"""Marks of a quarantine are on rollouts of the run, each with a name and a reason, and are taken back once at most.

That something is tainted breaks no rule: the ledger says what happened, and a quarantine what to think of it.
"""

from stepwell.audit.finding import Tally
from stepwell.audit.record import RunRecord
from stepwell.events import RolloutCleared, RolloutTainted
from stepwell.events.streams import quarantine_stream

HOLDS = "each mark is on a rollout of the run, says who made it and why, and is taken back once at most"
UNIT = "marks"


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule to `quarantine/<run>`."""
    stream = record.streams.get(quarantine_stream(record.run))
    marked: dict[str, int] = {}
    standing: set[str] = set()
    for seq, event in stream.events if stream else ():
        if not isinstance(event, RolloutTainted | RolloutCleared):
            continue  # the rule `chains` says so
        name, rollout = quarantine_stream(record.run), event.rollout
        tally.expect(
            bool(event.who and event.reason), name, seq, f"{event.type} of {rollout} by nobody, or without reason"
        )
        tally.expect(rollout in record.streams, name, seq, f"{event.type} of {rollout}, which is no rollout of the run")
        if isinstance(event, RolloutTainted):
            fits = rollout not in standing and event.number == marked.get(rollout, 0)
            tally.expect(
                fits, name, seq, f"mark {event.number} of {rollout}, which has {marked.get(rollout, 0)} before it"
            )
            marked[rollout] = marked.get(rollout, 0) + 1
            standing.add(rollout)
        else:
            fits = rollout in standing and event.number == marked[rollout] - 1
            tally.expect(fits, name, seq, f"mark {event.number} of {rollout} taken back, which does not stand")
            standing.discard(rollout)
