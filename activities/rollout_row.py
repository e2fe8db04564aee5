"""From a rollout's turns to the row of tokens that a trainer makes of it."""

from collections.abc import Sequence

from stepwell.agent.turn import TurnPayload
from stepwell.rl.samples import TrainSample


def train_sample(turns: Sequence[TurnPayload]) -> TrainSample:
    """Prompt, generated, observation, generated, … in one row."""
    token_ids: list[int] = []
    generated: list[bool] = []
    logprobs: list[float] = []
    for turn in turns:
        token_ids += [*turn.delta_ids, *turn.token_ids]
        generated += [False] * len(turn.delta_ids) + [True] * len(turn.token_ids)
        logprobs += turn.logprobs
    return TrainSample(token_ids=tuple(token_ids), generated=tuple(generated), logprobs=tuple(logprobs))
