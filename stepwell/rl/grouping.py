"""How a prompt group ends: its fate and its commitment, as a pure function of how its rollouts ended."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from stepwell.events import GroupClosed, RolloutFailed, RolloutGraded
from stepwell.events.children import ChildHead, facts_of_children
from stepwell.events.group_closed import Fate
from stepwell.events.streams import parse_prompt_stream, parse_rollout_stream, rollout_stream

MIN_VOTES = 2
"""Scored rollouts that a trained group needs: with fewer a baseline says nothing. A validated one needs them all."""


@dataclass(frozen=True, slots=True)
class MemberEnd:
    """How one rollout of a group ended."""

    graded: RolloutGraded | None
    """Its score, if it has one."""
    failed: RolloutFailed | None
    """Its failure, if it has one."""
    child: ChildHead | None
    """Where its stream ends; None if it was never begun."""


def close_group(
    members: Sequence[MemberEnd], purpose: Literal["train", "validation"], skipped: str = ""
) -> GroupClosed:
    """The closing event of a group.

    Args:
        members: Its rollouts, in the order of their samples.
        purpose: What it was generated for.
        skipped: Why an operator took its prompt out, in words; empty if nobody did.
    """
    children = [member.child for member in members if member.child is not None]
    scores = [None if member.graded is None else member.graded.score for member in members]
    failed = [member.failed for member in members if member.failed is not None]
    votes = sum(score is not None for score in scores)
    fate = Fate.VALIDATED if purpose == "validation" else Fate.TRAINED
    cause = ""
    if votes < (len(members) if purpose == "validation" else MIN_VOTES):
        data = [failure for failure in failed if failure.failure == "data"]
        fate = Fate.QUARANTINED if data else Fate.ABANDONED
        cause = (data or failed)[0].cause if failed else "no rollout has a score"
    if skipped:
        fate, cause = Fate.SKIPPED, skipped
    return GroupClosed(
        fate=fate, scores=scores, children=children, rollout_facts=facts_of_children(children), cause=cause
    )


def rollouts_of(group: str, samples: int, closed: GroupClosed | None) -> list[str]:
    """Streams of a group's rollouts, by sample: its own, or those that a fork took over from an ancestor.

    Args:
        group: The group's stream.
        samples: Rollouts that it was opened for.
        closed: Its end, which names those that were begun; None while it has none.
    """
    named = {parse_rollout_stream(child.stream).sample: child.stream for child in (closed.children if closed else ())}
    run, scope, prompt = parse_prompt_stream(group)
    return [named.get(sample) or rollout_stream(run, scope, prompt, sample) for sample in range(samples)]
