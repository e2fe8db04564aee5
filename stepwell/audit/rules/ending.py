"""A finished run ended as it says: at its newest version, with everything that was admitted completed."""

from stepwell.audit.finding import Tally
from stepwell.audit.record import RunRecord
from stepwell.events import OperatorActed, RunFinished, StepAdmitted, StepCompleted, StepTrained
from stepwell.events.run_finished import RunEnd

HOLDS = "the run's last event names its newest version, no admitted step is left, and who stopped it was an operator"
UNIT = "endings"


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule; a run that is not finished has nothing to check."""
    stream = record.run_events
    for seq, finished in stream.every(RunFinished):
        trained = [event.version for _, event in record.weights.every(StepTrained)] if record.weights else []
        completed = record.first_step + len(stream.every(StepCompleted))
        newest = completed if record.weights or record.fork else -1
        tally.expect(
            finished.version == newest,
            stream.name,
            seq,
            f"finished at version {finished.version}, {completed} steps are completed",
        )
        if finished.end is RunEnd.FAILED:
            continue
        if finished.end is RunEnd.STOPPED:
            acts = {act.action for _, act in record.operators.every(OperatorActed)}
            tally.expect(
                bool(acts & {"stop", "reject"}),
                stream.name,
                seq,
                "stopped, but no operator stopped it or rejected a gate",
            )
        admitted = record.first_step + len(stream.every(StepAdmitted))
        newest_trained = max(trained, default=record.first_step)
        tally.expect(
            admitted == completed == newest_trained,
            stream.name,
            seq,
            f"finished with {admitted} steps admitted, {newest_trained} trained, {completed} completed",
        )
