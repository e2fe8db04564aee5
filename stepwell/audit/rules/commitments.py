"""Every parent says how its children ended: equal heads, and equal facts digests."""

import json

from pydantic import TypeAdapter, ValidationError

from stepwell.audit.finding import Finding, Tally
from stepwell.audit.record import RunRecord, StreamRecord
from stepwell.events import (
    GroupClosed,
    RolloutGraded,
    StepAdmitted,
    StepCompleted,
    ValidationClosed,
    ValidationOpened,
    ValidationRecorded,
)
from stepwell.events.children import ChildHead, Commitment, facts_of_children
from stepwell.events.streams import prompt_stream, validation_scope, validation_stream, verdict_stream, weights_stream

HOLDS = "each closing event equals the heads and facts of the streams below it"
UNIT = "commitments"

_CHILDREN: TypeAdapter[list[ChildHead]] = TypeAdapter(list[ChildHead])


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule from the rollouts up to the run."""
    for group in record.of_kind("prompt"):
        _check_group(record, group, tally)
    for rollout in record.of_kind("rollout"):
        _check_verdict(record, rollout, tally)
    for validation in record.of_kind("validation"):
        _check_validation(record, validation, tally)
    _check_run(record, tally)


def _check_group(record: RunRecord, group: StreamRecord, tally: Tally) -> None:
    closing = group.first(GroupClosed)
    if closing is None:
        return
    seq, closed = closing
    _compare(record, closed.children, group.name, seq, tally)
    below = record.rollouts_below(group.name)
    named = {child.stream for child in closed.children}
    samples = range(len(closed.scores))
    for name in (f"{below}{sample}" for sample in samples):
        tally.expect(name in named or record.find(name) is None, group.name, seq, f"does not name its rollout {name}")
    for name in sorted(named):
        tally.expect(name.startswith(below), group.name, seq, f"names {name}, which is no rollout of its own")
    facts = facts_of_children(closed.children)
    tally.expect(
        facts == closed.rollout_facts, group.name, seq, f"rollout_facts is {closed.rollout_facts}, wanted {facts}"
    )


def _check_verdict(record: RunRecord, rollout: StreamRecord, tally: Tally) -> None:
    for seq, graded in rollout.every(RolloutGraded):
        verdict = record.streams.get(verdict_stream(graded.verdict_key))
        found = "no such stream" if verdict is None else verdict.child.head
        tally.expect(
            found == graded.verdict_head,
            rollout.name,
            seq,
            f"names the head {graded.verdict_head} of verdict {graded.verdict_key}, found {found}",
        )


def _check_validation(record: RunRecord, validation: StreamRecord, tally: Tally) -> None:
    opening, closing = validation.first(ValidationOpened), validation.first(ValidationClosed)
    if opening is None or closing is None:
        return
    seq, closed = closing
    scope = validation_scope(opening[1].version, opening[1].dataset)
    expected = [prompt_stream(record.run, scope, index) for index in range(len(opening[1].tasks))]
    check_commitment(record, closed.children_heads, closed.children_facts, expected, validation.name, seq, tally)


def _check_run(record: RunRecord, tally: Tally) -> None:
    stream = record.run_events
    for seq, admitted in stream.every(StepAdmitted):
        step = record.steps.get(admitted.step)
        expected = [prompt.stream for prompt in step.prompts] if step else []
        check_commitment(record, admitted.group_heads, admitted.group_facts, expected, stream.name, seq, tally)
    for seq, completed in stream.every(StepCompleted):
        hashes = record.weights.hashes if record.weights else ()
        found = hashes[completed.weights_seq] if completed.weights_seq < len(hashes) else "no such event"
        tally.expect(
            found == completed.weights_head,
            stream.name,
            seq,
            f"names {weights_stream(record.run)} #{completed.weights_seq} as {completed.weights_head}, found {found}",
        )
    for seq, recorded in stream.every(ValidationRecorded):
        name = validation_stream(record.run, recorded.version, recorded.dataset)
        child = record.streams[name].child if name in record.streams else None
        tally.expect(
            child is not None and (child.head, child.facts) == (recorded.stream_head, recorded.validation_facts),
            stream.name,
            seq,
            f"names {name} with head {recorded.stream_head} and facts {recorded.validation_facts}, found "
            + ("no such stream" if child is None else f"head {child.head} and facts {child.facts}"),
        )


def check_commitment(
    record: RunRecord,
    commitment: Commitment,
    facts: str,
    expected: list[str],
    stream: str,
    seq: int,
    tally: Tally,
) -> None:
    """A list of children in a blob: it names just the streams expected, each as it is, and its digests are right.

    Args:
        record: Has the streams, and the list.
        commitment: Names it.
        facts: Digest of what the children did, as the event says beside it.
        expected: Names of the children.
        stream: Of the event that commits.
        seq: Its place.
        tally: Takes what is found.
    """
    blob = record.documents.get(commitment.heads)
    if blob is None:
        return  # the rule `blobs` says so
    try:
        children = _CHILDREN.validate_python(json.loads(blob))
    except (ValueError, ValidationError) as error:
        tally.expect(False, stream, seq, f"blob {commitment.heads} is no list of children: {error}")
        return
    names = [child.stream for child in children]
    tally.expect(
        names == sorted(expected) and commitment.count == len(children),
        stream,
        seq,
        f"commits to {commitment.count} children, wanted the {len(expected)} from {min(expected, default='none')} on",
    )
    found = facts_of_children(children)
    tally.expect(found == facts == commitment.facts, stream, seq, f"facts of its children are {found}, it says {facts}")
    _compare(record, children, stream, seq, tally)


def _compare(record: RunRecord, children: list[ChildHead], stream: str, seq: int, tally: Tally) -> None:
    for child in children:
        stream_found = record.find(child.stream)
        found = stream_found.child if stream_found else None
        tally.checked += 1
        if found != child:
            tally.findings.append(Finding(stream, seq, _difference(child, found)))


def _difference(child: ChildHead, found: ChildHead | None) -> str:
    if found is None:
        return f"names the stream {child.stream}, which does not verify or does not exist"
    if found.seq != child.seq:
        return f"says that {child.stream} ends at #{child.seq}, it ends at #{found.seq}"
    if found.head != child.head:
        return f"says that {child.stream} ends with {child.head}, it ends with {found.head}"
    return f"says that {child.stream} has the facts {child.facts}, it has {found.facts}"
