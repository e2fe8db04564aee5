"""How long each training rollout was, and whether it counts in a baseline: gathered as events come, in any order of
streams."""

from dataclasses import dataclass

from stepwell.events import GroupClosed, RolloutEnded, RolloutGraded, TurnRecorded
from stepwell.events.base import Event
from stepwell.events.group_closed import Fate
from stepwell.report.lengths import Length, Spread, spread
from stepwell.rl.masks import mask_scored


@dataclass(slots=True)
class _Rollout:
    """What is known of one."""

    epoch: int = 0
    turns: int = 0
    tokens: int = 0
    ended: RolloutEnded | None = None
    graded: RolloutGraded | None = None


class RolloutLengths:
    """Takes up the events of training rollouts and of their groups."""

    def __init__(self) -> None:
        self._rollouts: dict[str, _Rollout] = {}
        self._fates: dict[str, Fate] = {}

    def see(self, stream: str, event: Event) -> None:
        """Takes up an event; those of validations, and other types, change nothing."""
        if not stream.split("/")[2].isdigit():
            return
        match event:
            case TurnRecorded():
                rollout = self._rollouts.setdefault(stream, _Rollout())
                if event.epoch != rollout.epoch:
                    rollout.epoch, rollout.turns, rollout.tokens = event.epoch, 0, 0
                rollout.turns += 1
                rollout.tokens += event.generated_tokens
            case RolloutEnded():
                self._rollouts.setdefault(stream, _Rollout()).ended = event
            case RolloutGraded():
                self._rollouts.setdefault(stream, _Rollout()).graded = event
            case GroupClosed():
                self._fates[stream.removeprefix("prompt/")] = event.fate
            case _:
                pass

    def by_step(self) -> dict[int, Spread]:
        """Tokens that the ended rollouts of each step generated."""
        tokens: dict[int, list[int]] = {}
        for stream, rollout in self._rollouts.items():
            if rollout.ended is not None:
                tokens.setdefault(int(stream.split("/")[2]), []).append(rollout.ended.generated_tokens)
        return {step: spread(tokens[step]) for step in sorted(tokens)}

    def lengths(self, *, overlong_filtering: bool) -> list[Length]:
        """Of each rollout that generated something and whose prompt has its fate."""
        found: list[Length] = []
        for stream, rollout in self._rollouts.items():
            fate = self._fates.get(stream.removeprefix("rollout/").rpartition("/")[0])
            if fate is not None and rollout.turns:
                vote = has_vote(fate, rollout.ended, rollout.graded, overlong_filtering=overlong_filtering)
                found.append(Length(rollout.tokens, rollout.turns, vote))
        return found


def has_vote(fate: Fate, ended: RolloutEnded | None, graded: RolloutGraded | None, *, overlong_filtering: bool) -> bool:
    """Whether a rollout counts in its group's baseline: it has a score that is not masked, in a trained group."""
    if fate is not Fate.TRAINED or ended is None or graded is None:
        return False
    mask = mask_scored(
        ended.reason,
        graded.score,
        generated_tokens=ended.generated_tokens,
        has_row=bool(ended.content),
        grading_timed_out=graded.timed_out,
        overlong_filtering=overlong_filtering,
    )
    return mask is None
