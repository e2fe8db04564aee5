"""What generated and ran a turn: an engine with a version that it attested, an attempt of a sandbox worker."""

from pydantic import ValidationError

from stepwell.audit.provenance.node import Edge, Node
from stepwell.audit.provenance.places import (
    generated_by,
    groups_of,
    refuse,
    rollout_of,
    rollouts_of,
    scopes,
    stream_of,
    tasks_of,
)
from stepwell.audit.provenance.reference import Ref
from stepwell.audit.provenance.source import Fact, RunSource
from stepwell.events import AttemptOpened, EngineStarted, TurnRecorded, VersionAttested
from stepwell.events.streams import engine_stream
from stepwell.nearest_names import did_you_mean
from stepwell.tasks.task import Task

ATTESTED = "it is what the engine loaded"
"""Why a load follows from its version."""


def engine(source: RunSource, ref: Ref) -> Node:
    """An engine's process."""
    fact = source.first(engine_stream(source.run, ref.parts[0]), EngineStarted)
    if fact is None:
        known = [name.rpartition("/")[2] for name in source.names("engine")]
        meant = did_you_mean(ref.parts[0], known)
        raise refuse(ref, f"{meant} engines are {', '.join(known[:5])}".strip() if known else "it has no engine yet")
    return Node(ref, f"{fact.event.backend} on {fact.event.worker}", (fact.mark,))


def engine_effects(source: RunSource, ref: Ref) -> list[Edge]:
    """What it loaded."""
    loads = source.every(engine_stream(source.run, ref.parts[0]), VersionAttested)
    return [
        Edge(ref, Ref("load", (ref.parts[0], str(fact.event.load))), "loaded and attested it", fact.mark)
        for fact in loads
    ]


def load(source: RunSource, ref: Ref) -> Node:
    """An engine with a version that it proved to serve."""
    fact = _load(source, ref)
    if fact is None:
        engine(source, Ref("engine", ref.parts[:1]))
        loads = source.every(engine_stream(source.run, ref.parts[0]), VersionAttested)
        raise refuse(ref, f"{ref.parts[0]} attested {len(loads)} loads, from 0")
    said = fact.event
    title = f"version {said.version}, attested as {said.digest[:12]}, probe within {said.probe_difference:.1e} nats"
    figures = {"version": said.version, "digest": said.digest, "probe_difference": said.probe_difference}
    return Node(ref, title, (fact.mark,), figures)


def load_causes(source: RunSource, ref: Ref) -> list[Edge]:
    """The version and the engine."""
    fact = _load(source, ref)
    if fact is None:
        return []
    return [
        Edge(Ref("version", (str(fact.event.version),)), ref, ATTESTED, fact.mark, is_chain=True),
        Edge(Ref("engine", ref.parts[:1]), ref, "loaded and attested it", fact.mark),
    ]


def load_effects(source: RunSource, ref: Ref) -> list[Edge]:
    """The turns that it generated: looks at every rollout of its version."""
    fact, found = _load(source, ref), list[Edge]()
    if fact is None:
        return found
    for scope in scopes(source):
        if generated_by(source, scope) != fact.event.version:
            continue
        for group in groups_of(source, scope):
            for rollout in rollouts_of(source, group):
                found += _turns_of(source, rollout, ref)
    return found


def _turns_of(source: RunSource, rollout: Ref, load: Ref) -> list[Edge]:
    turns = source.every(stream_of(source, rollout), TurnRecorded)
    counted = [turn for turn in turns if turn.event.epoch == turns[-1].event.epoch]
    return [
        Edge(load, effect, edge.why, edge.shown_by)
        for turn in counted
        for effect in [Ref("turn", (*rollout.parts, str(turn.event.turn)))]
        for edge in load_of(source, effect, turn)
        if edge.cause == load
    ]


def load_of(source: RunSource, ref: Ref, turn: Fact[TurnRecorded]) -> list[Edge]:
    """The engine and version that generated a turn: its newest attestation of that version."""
    attested = source.every(engine_stream(source.run, turn.event.engine), VersionAttested)
    fitting = [fact for fact in attested if fact.event.version == turn.event.version]
    if not fitting:
        return []
    cause = Ref("load", (turn.event.engine, str(fitting[-1].event.load)))
    return [Edge(cause, ref, f"generated its {turn.event.generated_tokens} tokens", turn.mark)]


def attempt(source: RunSource, ref: Ref) -> Node:
    """A worker that took a rollout up, with the image of its sandbox."""
    attempts = source.every(stream_of(source, ref), AttemptOpened)
    number = int(ref.parts[3])
    if number >= len(attempts):
        raise refuse(ref, f"rollout {'/'.join(ref.parts[:3])} had {len(attempts)} attempts, from 0")
    fact = attempts[number]
    resumed = f", from turn {fact.event.resumed_at}" if fact.event.resumed_at else ""
    title = f"by worker {fact.event.worker}{resumed}, in a {image_words(source, ref)}"
    return Node(ref, title, (fact.mark,), {"worker": fact.event.worker, "attempt": fact.event.attempt})


def attempt_effects(source: RunSource, ref: Ref) -> list[Edge]:
    """The turns that it ran; where none counts, the rollout."""
    stream = stream_of(source, ref)
    turns = source.every(stream, TurnRecorded)
    counted = [turn for turn in turns if turn.event.epoch == turns[-1].event.epoch]
    if not counted:
        attempts = source.every(stream, AttemptOpened)
        number = int(ref.parts[3])
        return [Edge(ref, rollout_of(stream), "tried it", attempts[number].mark)] if number < len(attempts) else []
    return [
        Edge(ref, effect, edge.why, edge.shown_by)
        for turn in counted
        for effect in [Ref("turn", (*ref.parts[:3], str(turn.event.turn)))]
        for edge in stood_by(source, effect, turn)
        if edge.cause == ref
    ]


def stood_by(source: RunSource, ref: Ref, turn: Fact[TurnRecorded]) -> list[Edge]:
    """The attempt in whose sandbox a turn ran: the last that opened before it."""
    attempts = source.every(turn.stream, AttemptOpened)
    before = [number for number, fact in enumerate(attempts) if fact.seq < turn.seq]
    if not before:
        return []
    cause = Ref("attempt", (*ref.parts[:3], str(before[-1])))
    return [Edge(cause, ref, "ran its action in a sandbox", attempts[before[-1]].mark)]


def image_words(source: RunSource, ref: Ref) -> str:
    """What the sandboxes of a rollout, or of a group, are made from."""
    tasks = tasks_of(source, ref.parts[0])
    prompt = int(ref.parts[1])
    task = read_task(source, tasks[prompt]) if prompt < len(tasks) else None
    if task is None or task.image is None:
        return "sandbox of the worker's own system"
    return f"sandbox of image {task.image.file} {task.image.sha256[:12]}"


def read_task(source: RunSource, digest: str) -> Task | None:
    """A task by its blob; None where it is not stored, or no task."""
    return source.remembered(("task", digest), lambda: _read(source.blob(digest)))


def _read(data: bytes | None) -> Task | None:
    try:
        return None if data is None else Task.model_validate_json(data)
    except ValidationError:
        return None


def _load(source: RunSource, ref: Ref) -> Fact[VersionAttested] | None:
    loads = source.every(engine_stream(source.run, ref.parts[0]), VersionAttested)
    return next((fact for fact in loads if fact.event.load == int(ref.parts[1])), None)
