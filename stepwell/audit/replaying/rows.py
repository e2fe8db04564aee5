"""A rollout's row of tokens, computed again from its recorded turns: what its end says of it, and a batch by digest."""

from collections.abc import Iterator, Mapping

from pydantic import ValidationError

from stepwell.agent.turn import TurnPayload
from stepwell.audit.replaying.difference import Difference
from stepwell.audit.replaying.step_record import GroupRecord, RolloutRecord
from stepwell.events import RolloutEnded
from stepwell.rl.rows import recorded_rows, train_rows
from stepwell.rl.samples import MissingLogprob, rollout_content

WHERE = "RolloutEnded"


def payloads_of(group: GroupRecord) -> set[str]:
    """Digests of the blobs that `row_differences` reads."""
    return {turn.payload for rollout in group.rollouts for turn in rollout.turns}


def row_differences(step: int, group: GroupRecord, payloads: Mapping[str, bytes]) -> Iterator[Difference]:
    """Where the ends of a group's rollouts are not what their turns make them.

    Args:
        step: Training step.
        group: What is recorded.
        payloads: The turns' blobs, by digest; one that is missing is a difference.
    """
    for rollout in group.rollouts:
        if rollout.ended is not None:
            yield from _of_rollout(step, group.prompt, rollout, rollout.ended, payloads)


def _of_rollout(
    step: int, prompt: int, rollout: RolloutRecord, ended: RolloutEnded, payloads: Mapping[str, bytes]
) -> Iterator[Difference]:
    def differs(field: str, recorded: object, computed: object) -> Difference:
        said = [str("none" if value == "" else value) for value in (recorded, computed)]
        return Difference(step, WHERE, field, said[0], said[1], prompt, rollout.stream)

    turns: list[TurnPayload] = []
    for turn in rollout.turns:
        blob = payloads.get(turn.payload)
        if blob is None:
            yield differs("content", ended.content, f"unknown: blob {turn.payload} of turn {turn.turn} is not stored")
            return
        try:
            turns.append(TurnPayload.model_validate_json(blob))
        except ValidationError as error:
            why = error.errors()[0]["msg"]
            yield differs("content", ended.content, f"unknown: turn {turn.turn} cannot be read: {why}")
            return
    rows = train_rows(turns)
    computed: dict[str, object] = {
        "turns": len(turns),
        "generated_tokens": sum(sum(row.generated) for row in rows),
        "total_tokens": sum(len(row.token_ids) for row in rows),
    }
    try:
        listed = recorded_rows(turns)
        # Before several rows were recorded, a rollout that had them said no content.
        is_old = len(rows) > 1 and rollout.rows is None and not ended.content
        computed["content"] = "" if is_old else rollout_content([row.content for row in listed])
        if rollout.rows is not None and rollout.rows.rows != listed:
            yield differs("rows", f"{len(rollout.rows.rows)} of them", f"{len(listed)}, or others")
    except (MissingLogprob, ValueError) as error:
        computed["content"] = f"none: {error}"
    for field, value in computed.items():
        if value != getattr(ended, field):
            yield differs(field, getattr(ended, field), value)
