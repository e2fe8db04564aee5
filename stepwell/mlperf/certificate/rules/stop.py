"""The run ended for the reason that it gives, at the version that it must, and the times that say when do not
contradict each other.

The times are the database's. They are not proven to be true; what is shown is that in no stream and between none of the
streams of a step an event is older than what it follows from, so that the stop cannot be moved by more than the room
between its neighbours.
"""

from collections.abc import Iterator
from typing import NamedTuple

from stepwell.audit.finding import Finding, Tally
from stepwell.audit.record import RunRecord, StreamRecord
from stepwell.events import (
    RunFinished,
    StepAdmitted,
    StepCompleted,
    StepTrained,
    ValidationClosed,
    ValidationOpened,
    ValidationRecorded,
    VersionCreated,
)
from stepwell.events.run_finished import RunEnd
from stepwell.events.streams import validation_stream
from stepwell.mlperf.certificate.evaluations import passing, scored
from stepwell.mlperf.certificate.recipe import CertifiedRecipe, recipe_of
from stepwell.mlperf.certificate.stopping import stop_of

HOLDS = "the run ended at the lowest version above its target, or without one at its last, and its times follow on"
UNIT = "times and ends"


class Moment(NamedTuple):
    """An event with its time."""

    what: str
    """In words."""
    stream: str
    """Its stream."""
    seq: int
    """Its place there."""
    time: str
    """The database's time of it; in this form times sort as text."""


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule to the run's end, then to all times."""
    recipe = recipe_of(record)
    if recipe is None:
        return  # the rule `whole` says so
    for seq, finished in record.run_events.every(RunFinished):
        _check_end(record, recipe, seq, finished, tally)
    for stream in (record.run_events, record.weights, *record.of_kind("validation")):
        if stream is not None:
            _check_stream(stream, tally)
    for first, then in _follows(record, recipe):
        what = f"{then.what} at {then.time}, before {first.what} at {first.time} ({first.stream} #{first.seq})"
        tally.expect(first.time <= then.time, then.stream, then.seq, what)


def _check_end(record: RunRecord, recipe: CertifiedRecipe, seq: int, finished: RunFinished, tally: Tally) -> None:
    stream, passed = record.run_events.name, passing(record, recipe)
    if finished.end is RunEnd.TARGET:
        target = recipe.validation.target
        what = f"the run ended by its target, but no version is above validation.target = {target}"
        tally.expect(passed is not None, stream, seq, what)
        if passed is not None and stop_of(record, recipe) is None:
            what = f"version {passed.event.version} passed, and no event says when it was made"
            tally.findings.append(Finding(stream, seq, what))
    elif finished.end is RunEnd.MAX_STEPS:
        steps = recipe.run.max_steps
        tally.expect(
            passed is None and finished.version == steps,
            stream,
            seq,
            f"the run ended as one that did all its steps, at version {finished.version}; "
            + (f"version {passed.event.version} had passed" if passed else f"run.max_steps is {steps}"),
        )
    if recipe.validation.mode == "inline" and passed is not None:
        late = [each for each in scored(record) if each.seq > passed.seq]
        for each in late[:1]:
            what = f"version {each.event.version} was evaluated after version {passed.event.version} had passed"
            tally.findings.append(Finding(stream, each.seq, what))


def _check_stream(stream: StreamRecord, tally: Tally) -> None:
    for seq, (before, after) in enumerate(zip(stream.times, stream.times[1:], strict=False), start=1):
        what = f"its time is {after}, the event before it has {before}"
        tally.expect(before <= after, stream.name, seq, what)


def _follows(record: RunRecord, recipe: CertifiedRecipe) -> Iterator[tuple[Moment, Moment]]:
    """Pairs of events of which the second follows from the first."""
    run, weights = record.run_events, record.weights
    made: dict[int, Moment] = {}
    for seq, event in weights.events if weights else ():
        if weights and isinstance(event, StepTrained | VersionCreated) and seq < len(weights.times):
            made[event.version] = Moment(f"version {event.version} was made", weights.name, seq, weights.times[seq])
    for seq, event in run.events:
        if seq >= len(run.times):
            continue
        if isinstance(event, StepAdmitted) and event.step + 1 in made:
            at = Moment(f"step {event.step} was admitted", run.name, seq, run.times[seq])
            yield at, made[event.step + 1]
        elif isinstance(event, StepCompleted) and event.version in made:
            at = Moment(f"step {event.step} was completed", run.name, seq, run.times[seq])
            yield made[event.version], at
        elif isinstance(event, ValidationRecorded):
            at = Moment(f"the result of version {event.version} was recorded", run.name, seq, run.times[seq])
            yield from _of_evaluation(record, event, made, at)
    if recipe.validation.mode == "offline":
        yield from _after_training(record, made)


def _of_evaluation(
    record: RunRecord, event: ValidationRecorded, made: dict[int, Moment], recorded: Moment
) -> Iterator[tuple[Moment, Moment]]:
    stream = record.streams.get(validation_stream(record.run, event.version, event.dataset))
    opening, closing = (stream.first(ValidationOpened), stream.first(ValidationClosed)) if stream else (None, None)
    if stream is None or opening is None or closing is None or closing[0] >= len(stream.times):
        return
    opened, closed = (
        Moment(f"the evaluation of version {event.version} {what}", stream.name, seq, stream.times[seq])
        for what, seq in (("began", opening[0]), ("ended", closing[0]))
    )
    if event.version in made:
        yield made[event.version], opened
    yield closed, recorded


def _after_training(record: RunRecord, made: dict[int, Moment]) -> Iterator[tuple[Moment, Moment]]:
    """Offline every evaluation begins when the last version is made."""
    last = made.get(max(made, default=-1))
    for stream in record.of_kind("validation"):
        for seq, opened in stream.every(ValidationOpened):
            if last is not None and seq < len(stream.times):
                name = f"the evaluation of version {opened.version} began"
                yield last, Moment(name, stream.name, seq, stream.times[seq])
