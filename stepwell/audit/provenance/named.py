"""From what somebody wrote to the thing that is meant: by its name, by one of its events, by a blob."""

from collections.abc import Iterator

from pydantic import TypeAdapter, ValidationError

from stepwell.audit.blob_names import folders_of
from stepwell.audit.provenance.node import Edge, Node
from stepwell.audit.provenance.places import refuse, stream_of, validation_ref, validations, versions
from stepwell.audit.provenance.reference import NoSuchThing, Ref
from stepwell.audit.provenance.source import Fact, Mention, RunSource, words_of
from stepwell.events import (
    AttemptOpened,
    CheckpointSaved,
    EngineStarted,
    GroupClosed,
    GroupOpened,
    OperatorActed,
    PromptReplaced,
    RolloutEnded,
    RunCreated,
    RunFinished,
    StepAdmitted,
    StepCompleted,
    StepDispatched,
    StepTrained,
    TurnRecorded,
    ValidationClosed,
    ValidationOpened,
    ValidationRecorded,
    VerdictReached,
    VersionAttested,
    VersionCreated,
)
from stepwell.events.base import Event

DIGITS = 64
"""Of a whole SHA-256."""
_FOLDER: TypeAdapter[dict[str, str]] = TypeAdapter(dict[str, str])


def resolve(source: RunSource, ref: Ref) -> Ref:
    """The thing that a parsed name means.

    Raises:
        NoSuchThing: the run has no such thing; names what it has.
    """
    match ref.kind:
        case "last":
            return _last_score(source, ref.parts[0])
        case "test" if len(ref.parts) == 4:
            return _test(source, ref)
        case "event":
            return _of_event(source, ref)
        case "test" | "verdict" | "task":
            return Ref(ref.kind, (_whole(source, ref, ref.parts[0]), *ref.parts[1:]))
        case "blob" if len(ref.parts[0]) < DIGITS:
            return resolve(source, Ref("blob", (_whole(source, ref, ref.parts[0]),)))
        case "blob":
            things = _things(source, ref.parts[0])
            if not things:
                raise refuse(ref, "no event of it names this blob, nor the files of an exported version")
            return things[0] if len(things) == 1 else ref
        case _:
            return ref


def blob(source: RunSource, ref: Ref) -> Node:
    """A blob that several things have in common."""
    marks = tuple(fact.mark for fact in _naming(source, ref.parts[0]))
    return Node(ref, f"named by {len(marks)} events", marks[:1])


def blob_effects(source: RunSource, ref: Ref) -> list[Edge]:
    """The things that have it."""
    found: dict[Ref, Edge] = {}
    for fact in _naming(source, ref.parts[0]):
        thing = _owner(fact, ref.parts[0])
        if thing is not None:
            found.setdefault(thing, Edge(ref, thing, f"its {fact.event.type} names it", fact.mark))
    return list(found.values())


def thing_of(fact: Fact[Event]) -> Ref | None:
    """What an event is about; None for events about nothing that has a name here."""
    kind, _, rest = fact.stream.partition("/")
    parts = tuple(rest.split("/")[1:])
    match fact.event:
        case RunCreated():
            return Ref("run")
        case RunFinished():
            return Ref("end")
        case StepDispatched() as event:
            return Ref("step", (str(event.step),))
        case StepAdmitted() as event:
            return Ref("batch", (str(event.step),))
        case StepCompleted() | StepTrained() | VersionCreated() | CheckpointSaved() as event:
            return Ref("version", (str(event.version),))
        case PromptReplaced() as event:
            return Ref("group", (str(event.step), str(event.prompt)))
        case ValidationRecorded() | ValidationOpened() as event:
            return Ref("validation", (str(event.version), event.dataset))
        case ValidationClosed():
            version, _, dataset = parts[0].removeprefix("v").partition("-")
            return Ref("validation", (version, dataset))
        case GroupOpened() | GroupClosed():
            return Ref("group", parts)
        case EngineStarted() as event:
            return Ref("engine", (event.engine,))
        case VersionAttested() as event:
            return Ref("load", (parts[0], str(event.load)))
        case VerdictReached():
            return Ref("verdict", (rest,))
        case OperatorActed():
            return Ref("operator", (str(fact.seq),))
        case TurnRecorded() as event:
            return Ref("turn", (*parts, str(event.turn)))
        case RolloutEnded():
            return Ref("patch", parts)
        case AttemptOpened() if kind == "weights":
            return None
        case _:
            return Ref("rollout", parts) if kind == "rollout" else None


def _last_score(source: RunSource, word: str) -> Ref:
    scored = [
        (fact, closed)
        for fact in validations(source)
        if fact.event.dataset == "main"
        for closed in source.every(fact.stream, ValidationClosed)
    ]
    if not scored:
        raise NoSuchThing(f"there is no {word} in this run: no validation on the set main is over")
    opened, closed = scored[-1]
    allowed = {"pass@1", "pass@k", f"pass@{closed.event.k}"}
    if word not in allowed:
        raise NoSuchThing(f"there is no {word} in this run: its validations give pass@1 and pass@{closed.event.k}")
    return validation_ref(opened)


def _whole(source: RunSource, ref: Ref, digest: str) -> str:
    """A digest of which somebody wrote the beginning."""
    if len(digest) == DIGITS:
        return digest
    facts = (fact for mention in source.mentions(digest) for fact in _fact(source, mention))
    meant = sorted({word for fact in facts for word in words_of(fact.event) if word.startswith(digest)})
    if len(meant) != 1:
        raise refuse(ref, f"{len(meant)} digests begin so{''.join(f' {each}' for each in meant[:3])}")
    return meant[0]


def _test(source: RunSource, ref: Ref) -> Ref:
    ended = source.first(stream_of(source, ref), RolloutEnded)
    if ended is None:
        raise refuse(ref, f"rollout {'/'.join(ref.parts[:3])} did not come to an end of its own, or there is none")
    return Ref("test", (ended.event.verdict_key, ref.parts[3]))


def _of_event(source: RunSource, ref: Ref) -> Ref:
    stream, seq = ref.parts[0], int(ref.parts[1])
    facts = source.stream(stream)
    if not facts:
        raise refuse(ref, f"there is no stream {stream}; `stepwell audit verify` names streams in full")
    if seq >= len(facts):
        raise refuse(ref, f"{stream} has the events 0 to {len(facts) - 1}")
    thing = thing_of(facts[seq])
    if thing is None:
        raise refuse(ref, f"it is a {facts[seq].event.type}, from which nothing follows")
    return thing


def _naming(source: RunSource, digest: str) -> Iterator[Fact[Event]]:
    """Events that name a blob, or the folder that lists it as a file."""
    found = source.mentions(digest)
    if not found:
        for fact in versions(source).values():
            for folder in folders_of(fact.event):
                if digest in _files(source, folder):
                    yield Fact(fact.stream, fact.seq, fact.hash, fact.event)
    yield from (fact for mention in sorted(found) for fact in _fact(source, mention))


def _fact(source: RunSource, mention: Mention) -> Iterator[Fact[Event]]:
    facts = source.stream(mention.stream)
    if mention.seq < len(facts):
        yield facts[mention.seq]


def _files(source: RunSource, folder: str) -> set[str]:
    data = source.blob(folder)
    try:
        return set() if data is None else set(_FOLDER.validate_json(data).values())
    except ValidationError:
        return set()


def _owner(fact: Fact[Event], digest: str) -> Ref | None:
    """The thing that a blob belongs to, of an event that names it."""
    match fact.event:
        case StepTrained() as event if event.manifest == digest:
            return Ref("batch", (str(event.step),))
        case StepDispatched() | ValidationOpened() | GroupOpened() | PromptReplaced():
            return Ref("task", (digest,))
        case _:
            return thing_of(fact)


def _things(source: RunSource, digest: str) -> list[Ref]:
    things = (_owner(fact, digest) for fact in _naming(source, digest))
    return list(dict.fromkeys(thing for thing in things if thing is not None))
