"""Rollouts, with the turns and tokens that an engine generated for them."""

from pydantic import ValidationError

from stepwell.agent.turn import TurnPayload
from stepwell.audit.provenance.groups import check_group
from stepwell.audit.provenance.node import Edge, Figure, Node
from stepwell.audit.provenance.places import refuse, rollouts_of, sample_of, scope_taint, stream_of, taint
from stepwell.audit.provenance.reference import NoSuchThing, Ref
from stepwell.audit.provenance.serving import load_of, stood_by
from stepwell.audit.provenance.source import Fact, RunSource
from stepwell.events import (
    AttemptOpened,
    GroupClosed,
    RolloutEnded,
    RolloutFailed,
    RolloutGraded,
    TurnRecorded,
)
from stepwell.events.streams import prompt_stream


def rollout(source: RunSource, ref: Ref) -> Node:
    """A rollout."""
    check_rollout(source, ref)
    stream = stream_of(source, ref)
    facts = source.stream(stream)
    if not facts:
        return Node(ref, "not begun", ())
    ended, graded = source.first(stream, RolloutEnded), source.first(stream, RolloutGraded)
    failed, turns = source.first(stream, RolloutFailed), counted_turns(source, stream)
    figures: dict[str, Figure] = {"turns": len(turns), "tokens": sum(turn.event.generated_tokens for turn in turns)}
    parts = [f"{len(turns)} turns", f"{figures['tokens']} tokens"]
    if graded is not None:
        figures["score"] = graded.event.score
        parts.insert(0, "solved" if graded.event.score > 0 else "not solved")
    if failed is not None:
        figures["failure"] = failed.event.failure
        parts.insert(0, f"failed: {failed.event.failure}: {failed.event.cause}")
    if ended is not None:
        figures["end"] = ended.event.reason.value
        parts.append(f"ended by {ended.event.reason.value}")
    sample = sample_of(source, stream)
    if sample is not None:
        figures |= {"advantage": sample.advantage, "mask": sample.mask.value if sample.mask else None}
        parts.append(f"masked: {sample.mask.value}" if sample.mask else f"advantage {sample.advantage:+.3f}")
    last = next((fact for fact in (graded, failed, ended) if fact is not None), facts[-1])
    return Node(ref, ", ".join(parts), (last.mark,), figures, _rollout_taint(source, ref))


def rollout_causes(source: RunSource, ref: Ref) -> list[Edge]:
    """Its verdict and its turns; of one without turns, its attempts."""
    stream, found = stream_of(source, ref), list[Edge]()
    for graded in source.every(stream, RolloutGraded):
        reused = ", as of the same tree before" if graded.event.reused else ""
        found.append(Edge(Ref("verdict", (graded.event.verdict_key,)), ref, f"its score{reused}", graded.mark))
    turns = counted_turns(source, stream)
    found += [Edge(turn_ref(ref, fact), ref, "one of its turns", fact.mark) for fact in turns]
    if not turns:
        attempts = source.every(stream, AttemptOpened)
        found += [
            Edge(Ref("attempt", (*ref.parts, str(number))), ref, "tried it", fact.mark)
            for number, fact in enumerate(attempts)
        ]
    return found


def rollout_effects(source: RunSource, ref: Ref) -> list[Edge]:
    """Its group."""
    closed = source.first(prompt_stream(source.run, ref.parts[0], int(ref.parts[1])), GroupClosed)
    return [Edge(ref, Ref("group", ref.parts[:2]), "one of its samples", closed.mark if closed else None)]


def turn(source: RunSource, ref: Ref) -> Node:
    """A turn of the epoch that counts."""
    fact = require_turn(source, ref)
    said = fact.event
    title = (
        f"{said.tool}, {said.generated_tokens} tokens after {said.prompt_tokens} of context, "
        f"by {said.engine} under version {said.version}"
    )
    figures: dict[str, Figure] = {
        "version": said.version,
        "engine": said.engine,
        "tool": said.tool,
        "payload": said.payload,
        "tree": said.tree,
        "generated_tokens": said.generated_tokens,
    }
    return Node(ref, title, (fact.mark,), figures)


def turn_causes(source: RunSource, ref: Ref) -> list[Edge]:
    """The engine and version that generated it, the attempt that ran it, the turn before."""
    turns = counted_turns(source, stream_of(source, ref))
    fact = next((each for each in turns if each.event.turn == int(ref.parts[3])), None)
    if fact is None:
        return []
    found = load_of(source, ref, fact) + stood_by(source, ref, fact)
    if fact.event.turn > 0:
        before = Ref("turn", (*ref.parts[:3], str(fact.event.turn - 1)))
        found.append(Edge(before, ref, "its context", fact.mark, is_chain=True))
    return found


def turn_effects(source: RunSource, ref: Ref) -> list[Edge]:
    """Its rollout, the patch if it is the last, the turn after."""
    stream = stream_of(source, ref)
    turns = counted_turns(source, stream)
    fact = next((each for each in turns if each.event.turn == int(ref.parts[3])), None)
    if fact is None:
        return []
    place = ref.parts[:3]
    found = [Edge(ref, Ref("rollout", place), "one of its turns", fact.mark)]
    ended = source.first(stream, RolloutEnded)
    if ended is not None and fact.seq == turns[-1].seq:
        found.append(Edge(ref, Ref("patch", place), "the work tree after it", ended.mark))
    after = next((each for each in turns if each.event.turn == fact.event.turn + 1), None)
    if after is not None:
        found.append(Edge(ref, turn_ref(Ref("rollout", place), after), "its context", after.mark, is_chain=True))
    return found


def token(source: RunSource, ref: Ref) -> Node:
    """A generated token."""
    fact = require_turn(source, ref)
    data, index = source.blob(fact.event.payload), int(ref.parts[4])
    if index >= fact.event.generated_tokens:
        raise refuse(ref, f"turn {fact.event.turn} has the tokens 0 to {fact.event.generated_tokens - 1}")
    if data is None:
        return Node(ref, "the turn's payload is not stored", (fact.mark,))
    try:
        payload = TurnPayload.model_validate_json(data)
    except ValidationError as error:
        raise NoSuchThing(
            f"payload {fact.event.payload} of {ref} cannot be read: {error.errors()[0]['msg']}"
        ) from error
    token_id, logprob = payload.token_ids[index], payload.logprobs[index]
    title = f"id {token_id}, log-probability {logprob:.4f}"
    return Node(ref, title, (fact.mark,), {"id": token_id, "logprob": logprob, "payload": fact.event.payload})


def token_causes(source: RunSource, ref: Ref) -> list[Edge]:
    """What generated its turn."""
    turn_of = Ref("turn", ref.parts[:4])
    return [Edge(edge.cause, ref, edge.why, edge.shown_by, edge.is_chain) for edge in turn_causes(source, turn_of)]


def token_effects(source: RunSource, ref: Ref) -> list[Edge]:
    """Its turn."""
    fact = require_turn(source, ref)
    return [Edge(ref, Ref("turn", ref.parts[:4]), f"one of its {fact.event.generated_tokens} tokens", fact.mark)]


def counted_turns(source: RunSource, stream: str) -> list[Fact[TurnRecorded]]:
    """Turns of a rollout's last epoch, in order."""
    turns = source.every(stream, TurnRecorded)
    return [fact for fact in turns if fact.event.epoch == turns[-1].event.epoch]


def turn_ref(rollout: Ref, fact: Fact[TurnRecorded]) -> Ref:
    """The name of a turn."""
    return Ref("turn", (*rollout.parts, str(fact.event.turn)))


def require_turn(source: RunSource, ref: Ref) -> Fact[TurnRecorded]:
    """A turn that there is.

    Raises:
        NoSuchThing: there is none.
    """
    check_rollout(source, ref)
    turns = counted_turns(source, stream_of(source, ref))
    fact = next((each for each in turns if each.event.turn == int(ref.parts[3])), None)
    if fact is None:
        there = f"turns 0 to {turns[-1].event.turn}" if turns else "no turn"
        raise refuse(Ref("turn", ref.parts[:4]), f"rollout {'/'.join(ref.parts[:3])} has {there}")
    return fact


def check_rollout(source: RunSource, ref: Ref) -> None:
    """Refuses a rollout that the run has not. Raises as `check_group`."""
    of = Ref("group", ref.parts[:2])
    check_group(source, of)
    samples = len(rollouts_of(source, of))
    if int(ref.parts[2]) >= samples:
        raise refuse(Ref("rollout", ref.parts[:3]), f"group {'/'.join(of.parts)} has {samples} samples, from 0")


def _rollout_taint(source: RunSource, ref: Ref) -> str:
    name = stream_of(source, ref)
    for mark in taint(source).marks:
        if mark.rollout == name:
            return f"marked by {mark.who}: {mark.reason}"
    return scope_taint(source, ref.parts[0], f"{name}/")
