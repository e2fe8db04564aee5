"""Where the recipe asks an operator, one was asked and agreed before the run went on.

Within `operator/<run>` the order of question and answer is shown. What a gate guards lies in other streams, which have
no common order with it: there it is shown that the answer exists and is an approval.
"""

from collections.abc import Iterator
from typing import NamedTuple

from stepwell.audit.finding import Tally
from stepwell.audit.record import RunRecord
from stepwell.events import (
    HoldRaised,
    OperatorActed,
    RunFinished,
    StepAdmitted,
    StepDispatched,
    StepTrained,
    ValidationOpened,
    ValidationRecorded,
    VersionAttested,
)
from stepwell.events.group_closed import Fate
from stepwell.events.run_finished import RunEnd
from stepwell.recipe.sections import BANDS, GateSection

HOLDS = "each gate that the recipe asks for was raised, then approved, before what it guards; no answer is without one"
UNIT = "gates and answers"

_SECTION = GateSection()
_UNANSWERED = {True: "", False: "an operator rejected it", None: "nobody answered"}


class Guarded(NamedTuple):
    """Something that a gate must have been opened for."""

    gate: str
    """Name of the gate."""
    stream: str
    """Where what it guards is recorded."""
    seq: int
    """Its place there."""
    what: str
    """What happened, and why an operator had to be asked."""


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule to each answer, then to each thing that a gate guards."""
    answers = _answers(record, tally)
    for guarded in _guarded(record):
        found = _UNANSWERED[answers.get(guarded.gate)]
        tally.expect(not found, guarded.stream, guarded.seq, f"{guarded.what}: gate {guarded.gate}: {found}")


def _answers(record: RunRecord, tally: Tally) -> dict[str, bool]:
    """Whether each answered gate was approved; an answer follows its question."""
    stream = record.operators
    open_holds: set[str] = set()
    raised: dict[str, int] = {}
    answers: dict[str, bool] = {}
    for seq, event in stream.events:
        if isinstance(event, HoldRaised):
            before = raised.get(event.hold, 0)
            tally.expect(
                event.number == before, stream.name, seq, f"raises {event.hold} number {event.number}, wanted {before}"
            )
            raised[event.hold] = before + 1
            open_holds.add(event.hold)
        elif isinstance(event, OperatorActed) and event.action in ("approve", "reject"):
            gate = str(event.arguments.get("gate"))
            is_open = gate in open_holds
            tally.expect(is_open, stream.name, seq, f"{event.action} of {gate}, which was not waiting for an answer")
            open_holds.discard(gate)
            if is_open:
                answers[gate] = event.action == "approve"
        elif isinstance(event, OperatorActed) and event.action == "limit":
            open_holds.discard(f"limit/{event.arguments.get('limit')}")
    return answers


def _guarded(record: RunRecord) -> Iterator[Guarded]:
    """All that a gate of the recipe guards, in the run's order."""
    gates = record.recipe.gates if record.recipe else _SECTION
    admitted = {event.step: event for _, event in record.run_events.every(StepAdmitted)}
    out_of_band = {
        made.version: list(_steps_metrics(gates, admitted.get(made.step), made)) for made in _trained(record)
    }
    for engine in record.of_kind("engine"):
        for seq, attested in engine.every(VersionAttested):
            version = attested.version
            for metric, figures in out_of_band.get(version, []):
                what = f"version {version} is served, though {figures}"
                yield Guarded(f"band/{metric}/{version}", engine.name, seq, what)
            if gates.publish and version > record.first_step:
                yield Guarded(f"publish/{version}", engine.name, seq, f"version {version} is served")
    for validation in record.of_kind("validation"):
        for seq, opened in validation.every(ValidationOpened):
            if gates.validation:
                what = f"version {opened.version} is validated"
                yield Guarded(f"validation/{opened.version}", validation.name, seq, what)
    yield from _after_scores(record, gates)
    yield from _smaller_steps(record)


def _trained(record: RunRecord) -> list[StepTrained]:
    return [event for _, event in record.weights.every(StepTrained)] if record.weights else []


def _steps_metrics(gates: GateSection, admitted: StepAdmitted | None, made: StepTrained) -> Iterator[tuple[str, str]]:
    """Metrics of the step that made a version which are out of their bands, with their figures in words."""
    measured: dict[str, float | None] = {
        "reward": admitted.reward_mean if admitted else None,
        "mask_rate": admitted.masked / admitted.rollouts if admitted and admitted.rollouts else 0.0,
        "grad_norm": made.metrics.get("grad_norm"),
        "kl": made.metrics.get("kl_mean"),
    }
    for metric in BANDS:
        band = getattr(gates, metric)
        if band is None or metric not in measured:
            continue
        value = measured[metric]
        if value is None:
            yield metric, f"{metric} of step {made.step} is not recorded, and gates.{metric} is {list(band)}"
        elif not band[0] <= value <= band[1]:
            yield metric, f"{metric} of step {made.step} is {value:.4g}, and gates.{metric} is {list(band)}"


def _after_scores(record: RunRecord, gates: GateSection) -> Iterator[Guarded]:
    """What follows in the run's stream after a score that is out of its band."""
    band, waits_for = gates.pass_k, list[tuple[str, str]]()
    if band is None:
        return
    for seq, event in record.run_events.events:
        if isinstance(event, ValidationRecorded) and event.dataset == "main":
            if not band[0] <= event.pass_k <= band[1]:
                figures = f"pass@k of version {event.version} is {event.pass_k:.4g}, and gates.pass_k is {list(band)}"
                waits_for.append((f"band/pass_k/{event.version}", figures))
        elif isinstance(event, StepDispatched):
            for gate, figures in waits_for:
                yield Guarded(gate, record.run_events.name, seq, f"step {event.step} is dispatched, though {figures}")
            waits_for.clear()
        elif isinstance(event, RunFinished) and event.end in (RunEnd.TARGET, RunEnd.MAX_STEPS):
            for gate, figures in waits_for:
                yield Guarded(gate, record.run_events.name, seq, f"the run ends well, though {figures}")


def _smaller_steps(record: RunRecord) -> Iterator[Guarded]:
    wanted = record.recipe.failures.min_prompts if record.recipe else 0
    for seq, admitted in record.run_events.every(StepAdmitted):
        step = record.steps.get(admitted.step)
        if step is None:
            continue  # the rule `commitments` says so
        closings = [record.closing(prompt.stream) for prompt in step.prompts]
        trained = sum(closed is not None and closed.fate is Fate.TRAINED for closed in closings)
        if trained < wanted:
            what = f"step {admitted.step} is admitted with {trained} prompts, and failures.min_prompts is {wanted}"
            yield Guarded(f"smaller/{admitted.step}", record.run_events.name, seq, what)
