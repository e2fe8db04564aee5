"""From a rollout's turns to the rows of tokens that a trainer makes of it."""

from collections.abc import Sequence

from stepwell.agent.turn import TurnPayload
from stepwell.events.rows_recorded import RecordedRow
from stepwell.rl.samples import TrainSample


def train_rows(turns: Sequence[TurnPayload]) -> list[TrainSample]:
    """One row for each segment, in order; what an earlier row generated is context in a later one."""
    return [train_sample([turns[number] for number in numbers]) for numbers in _turns_of_rows(turns)]


def recorded_rows(turns: Sequence[TurnPayload]) -> tuple[RecordedRow, ...]:
    """What is recorded of each row, in the same order."""
    return tuple(
        RecordedRow(
            turns=numbers,
            tokens=len(row.token_ids),
            generated_tokens=sum(row.generated),
            content=row.content_digest(),
        )
        for numbers, row in zip(_turns_of_rows(turns), train_rows(turns), strict=True)
    )


def train_sample(turns: Sequence[TurnPayload]) -> TrainSample:
    """Prompt, generated, observation, generated, … of one segment in one row."""
    token_ids: list[int] = []
    generated: list[bool] = []
    logprobs: list[float] = []
    for turn in turns:
        token_ids += [*turn.delta_ids, *turn.token_ids]
        generated += [False] * len(turn.delta_ids) + [True] * len(turn.token_ids)
        logprobs += turn.logprobs
    return TrainSample(token_ids=tuple(token_ids), generated=tuple(generated), logprobs=tuple(logprobs))


def _turns_of_rows(turns: Sequence[TurnPayload]) -> list[tuple[int, ...]]:
    segments = sorted({turn.segment for turn in turns})
    return [tuple(number for number, turn in enumerate(turns) if turn.segment == segment) for segment in segments]
