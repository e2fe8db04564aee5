"""What a batch manifest holds of a rollout, from how the rollout ended."""

from stepwell.events import RolloutEnded, RolloutFailed, RolloutGraded, RowsRecorded
from stepwell.events.streams import parse_rollout_stream
from stepwell.rl.batching import RolloutFacts
from stepwell.rl.masks import MaskReason, mask_scored


def rollout_facts(
    stream: str,
    ended: RolloutEnded | None,
    graded: RolloutGraded | None,
    failed: RolloutFailed | None,
    *,
    rows: RowsRecorded | None,
    overlong_filtering: bool,
) -> RolloutFacts:
    """A rollout of a trained group as its step's manifest has it; one without a score has no row and no vote.

    Args:
        stream: Its stream.
        ended: Its end, if it came to one of its own.
        graded: Its score, if it has one.
        failed: Its failure, if it has one.
        rows: Its rows of tokens, if it has several.
        overlong_filtering: As in `stepwell.rl.config.GrpoConfig`.
    """
    name = parse_rollout_stream(stream)
    if ended is None or graded is None:
        is_data = failed is not None and failed.failure == "data"
        return RolloutFacts(
            stream=stream,
            prompt=name.prompt,
            sample=name.sample,
            turns=0,
            tokens=0,
            generated_tokens=0,
            content="",
            reward=None,
            mask=MaskReason.DATA if is_data else MaskReason.INFRA,
        )
    return RolloutFacts(
        stream=stream,
        prompt=name.prompt,
        sample=name.sample,
        turns=ended.turns,
        tokens=ended.total_tokens if ended.content else 0,
        generated_tokens=ended.generated_tokens,
        content=ended.content,
        reward=graded.score,
        mask=mask_scored(
            ended.reason,
            graded.score,
            generated_tokens=ended.generated_tokens,
            has_row=bool(ended.content),
            grading_timed_out=graded.timed_out,
            overlong_filtering=overlong_filtering,
        ),
        rows=() if rows is None else rows.rows,
    )
