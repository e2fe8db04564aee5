"""Answers for a harness that is started anew: what was recorded before its worker died is not sampled again."""

import hashlib
from collections.abc import Sequence

from stepwell.agent.episode import Divergence, Sampled
from stepwell.agent.turn import RecordedTurn, TurnPayload
from stepwell.policy.protocol import Generation


class Replay:
    """The recorded turns of a rollout that were not asked for again yet, in order."""

    def __init__(self, recorded: Sequence[RecordedTurn], version: int) -> None:
        self._turns = list(recorded)
        self._prompts = prompts([turn.payload for turn in recorded])
        self._version = version
        self._next = 0

    @property
    def left(self) -> bool:
        """Whether there is a turn that was not asked for again yet."""
        return self._next < len(self._turns)

    def take(self, prompt_ids: tuple[int, ...], tree: str) -> Sampled:
        """The next turn's generation.

        Raises:
            Divergence: another prompt, or another tree, than when it was recorded.
        """
        turn, prompt = self._turns[self._next], self._prompts[self._next]
        if prompt_ids != prompt:
            raise Divergence(self._next, *(f"prompt {_digest(ids)}" for ids in (prompt, prompt_ids)))
        if tree != turn.tree:
            raise Divergence(self._next, turn.tree, tree)
        self._next += 1
        payload = turn.payload
        generation = Generation(payload.token_ids, payload.logprobs, payload.finish_reason, self._version)
        return Sampled(generation, "recorded", turn.seconds)


def prompts(turns: Sequence[TurnPayload]) -> list[tuple[int, ...]]:
    """The whole prompt of each turn, from the rows that the turns make."""
    rows: dict[int, tuple[int, ...]] = {}
    found: list[tuple[int, ...]] = []
    for turn in turns:
        found.append((*rows.get(turn.segment, ()), *turn.delta_ids))
        rows[turn.segment] = (*found[-1], *turn.token_ids)
    return found


def _digest(ids: tuple[int, ...]) -> str:
    return hashlib.sha256(repr(ids).encode()).hexdigest()
