"""Steps follow each other: dispatched, admitted, trained and completed once each, version s to s + 1."""

from stepwell.audit.finding import Tally
from stepwell.audit.record import RunRecord
from stepwell.events import StepAdmitted, StepCompleted, StepDispatched, StepTrained, VersionCreated

HOLDS = "steps are contiguous, none is trained twice, and each makes the version after its parent"
UNIT = "steps and versions"


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule to the run's stream and to the weights'."""
    stream = record.run_events
    for kind in (StepDispatched, StepAdmitted, StepCompleted):
        for wanted, (seq, event) in enumerate(stream.every(kind), start=record.first_step):
            tally.expect(
                event.step == wanted, stream.name, seq, f"{event.type} of step {event.step}, wanted step {wanted}"
            )
    _check_order(record, tally)
    trained = _check_weights(record, tally)
    manifests = {event.step: event.manifest for _, event in stream.every(StepAdmitted)}
    for seq, completed in stream.every(StepCompleted):
        made = trained.get(completed.step)
        tally.expect(
            made is not None and (made.version, made.digests.exported) == (completed.version, completed.weights_digest),
            stream.name,
            seq,
            f"step {completed.step} completed as version {completed.version} {completed.weights_digest}, trained was "
            + ("no such step" if made is None else f"version {made.version} {made.digests.exported}"),
        )
    for step, made in trained.items():
        tally.expect(
            manifests.get(step) == made.manifest,
            f"weights/{record.run}",
            None,
            f"step {step} was trained on the batch {made.manifest}, admitted was {manifests.get(step, 'none')}",
        )


def _check_order(record: RunRecord, tally: Tally) -> None:
    """Dispatched before admitted before completed."""
    stream = record.run_events
    dispatched = {event.step: seq for seq, event in stream.every(StepDispatched)}
    admitted = {event.step: seq for seq, event in stream.every(StepAdmitted)}
    for step, seq in admitted.items():
        tally.expect(
            dispatched.get(step, seq) < seq, stream.name, seq, f"step {step} admitted before it was dispatched"
        )
    for seq, event in stream.every(StepCompleted):
        tally.expect(
            admitted.get(event.step, seq) < seq, stream.name, seq, f"step {event.step} completed before it was admitted"
        )


def _check_weights(record: RunRecord, tally: Tally) -> dict[int, StepTrained]:
    """The stream of versions; returns what was trained, by step."""
    weights = record.weights
    trained: dict[int, StepTrained] = {}
    if weights is None:
        return trained
    newest = -1 if record.fork is None else record.fork.step
    for seq, event in weights.events:
        match event:
            case VersionCreated():
                tally.expect(newest == -1, weights.name, seq, f"version 0 created after version {newest}")
                newest = max(newest, 0)
            case StepTrained():
                tally.expect(
                    event.step not in trained, weights.name, seq, f"step {event.step} was trained before, and again"
                )
                tally.expect(
                    (event.parent, event.version, event.step) == (newest, newest + 1, newest),
                    weights.name,
                    seq,
                    f"step {event.step} made version {event.version} of version {event.parent}; the newest is {newest}",
                )
                trained[event.step] = event
                newest = event.version
            case _:
                pass
    return trained
