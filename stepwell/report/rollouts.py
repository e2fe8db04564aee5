"""Rollouts under way, tokens generated, and what had to be done over."""

from collections import Counter, deque
from dataclasses import dataclass, field
from enum import StrEnum

from stepwell.events import AttemptOpened, RolloutEnded, RolloutFailed, RolloutGraded, RolloutRestarted, TurnRecorded
from stepwell.events.base import Event

RECENT_S = 20.0
"""Window of the token rate that is called recent."""
BIN_S = 5.0
"""Width of the bins in which tokens are counted over time."""


class RecoveryKind(StrEnum):
    """What was taken up after something died."""

    ROLLOUT_RETAKEN = "rollout retaken"
    """Another attempt took a rollout up at its last recorded turn."""
    ROLLOUT_RESTARTED = "rollout started over"
    """The rebuilt work tree differed from the recorded one."""
    ENGINE_RESTARTED = "engine restarted"
    """An engine beyond those that the recipe starts."""
    TRAINER_RETAKEN = "trainer retaken"
    """Another trainer took the weights up, or one did so again before it finished its step."""


@dataclass(frozen=True)
class Recovery:
    """One of them."""

    time_s: float
    """When, in seconds since the epoch."""
    kind: RecoveryKind
    """What."""
    stream: str
    """Where."""
    detail: str
    """In words."""
    lost_s: float | None = None
    """Seconds from the last recorded event of what was lost to the attempt that took it up; None where the ledger does
    not tell."""


@dataclass(frozen=True)
class RolloutFailure:
    """A rollout without a score."""

    time_s: float
    """When, in seconds since the epoch."""
    stream: str
    """Which."""
    failure: str
    """`infra`, `data` or `operator`."""
    cause: str
    """In words."""


@dataclass
class TokenCount:
    """Generated tokens over time."""

    total: int = 0
    """All of them, those of rollouts that were started over too."""
    first_s: float | None = None
    """When the first were recorded, in seconds since the epoch."""
    bins: dict[int, int] = field(default_factory=lambda: dict[int, int]())
    """Tokens by bin of `BIN_S` since the epoch."""
    _recent: deque[tuple[float, int]] = field(default_factory=lambda: deque[tuple[float, int]]())

    def add(self, time_s: float, tokens: int) -> None:
        """Tokens of a turn that was recorded at a time."""
        self.total += tokens
        self.first_s = time_s if self.first_s is None else min(self.first_s, time_s)
        number = int(time_s // BIN_S)
        self.bins[number] = self.bins.get(number, 0) + tokens
        self._recent.append((time_s, tokens))
        while self._recent[0][0] < time_s - RECENT_S:
            self._recent.popleft()

    def recent_per_s(self, now_s: float) -> float:
        """Tokens a second over the last `RECENT_S`, or since the first if that is less long ago."""
        if self.first_s is None:
            return 0.0
        window_s = min(RECENT_S, max(1.0, now_s - self.first_s))
        return sum(tokens for time_s, tokens in self._recent if time_s > now_s - RECENT_S) / window_s


@dataclass
class _Open:
    """A rollout that is not over."""

    attempts: int = 0
    ended: bool = False
    last_s: float = 0.0
    """When the newest attempt or turn was recorded."""
    epoch: int = 0
    turns: int = 0
    """Recorded in this epoch."""
    turns_before: int = 0
    """Most recorded in an earlier one."""


@dataclass
class Rollouts:
    """All rollouts of a run; those that are over are only counted."""

    begun: int = 0
    ended: int = 0
    graded: int = 0
    failed: int = 0
    passed: int = 0
    """Of the graded, with score 1."""
    reused_verdicts: int = 0
    """Of the graded, whose tree had been graded before."""
    ends: Counter[str] = field(default_factory=lambda: Counter[str]())
    """Of the ended, by why they did."""
    attempts: int = 0
    """At all of them."""
    turns: int = 0
    turns_repeated: int = 0
    """Of the turns, those that had been recorded in an earlier epoch of their rollout."""
    tokens: TokenCount = field(default_factory=TokenCount)
    failures: list[RolloutFailure] = field(default_factory=lambda: list[RolloutFailure]())
    recoveries: list[Recovery] = field(default_factory=lambda: list[Recovery]())
    """Attempts after the first, those after a pause among them, and rollouts that were started over."""
    verdict_keys: set[str] = field(default_factory=lambda: set[str]())
    """Of the ended: the verdicts that this run asks for."""
    _open: dict[str, _Open] = field(default_factory=lambda: dict[str, _Open]())
    _over: set[str] = field(default_factory=lambda: set[str]())

    @property
    def in_flight(self) -> int:
        """Begun, and neither ended nor failed."""
        return sum(not rollout.ended for rollout in self._open.values())

    @property
    def grading(self) -> int:
        """Ended, and waiting for a verdict."""
        return sum(rollout.ended for rollout in self._open.values())

    @property
    def retaken(self) -> list[Recovery]:
        """Attempts after the first, those after a pause among them."""
        return [recovery for recovery in self.recoveries if recovery.kind is RecoveryKind.ROLLOUT_RETAKEN]

    def see(self, stream: str, event: Event, time_s: float) -> None:
        """Takes up an event of a rollout's stream; other types change nothing."""
        match event:
            case AttemptOpened():
                self._attempt(stream, event, time_s)
            case TurnRecorded():
                self._turn(self._of(stream), event, time_s)
                self.tokens.add(time_s, event.generated_tokens)
            case RolloutRestarted():
                detail = f"after turn {event.turn} the rebuilt work tree differed"
                self.recoveries.append(Recovery(time_s, RecoveryKind.ROLLOUT_RESTARTED, stream, detail))
            case RolloutEnded():
                self.ended += 1
                self.ends[event.reason] += 1
                self.verdict_keys.add(event.verdict_key)
                self._of(stream).ended = True
            case RolloutGraded():
                self.graded += 1
                self.passed += event.score == 1.0
                self.reused_verdicts += event.reused
                self._close(stream)
            case RolloutFailed():
                self.failed += 1
                self.failures.append(RolloutFailure(time_s, stream, event.failure, event.cause))
                self._close(stream)
            case _:
                pass

    def _of(self, stream: str) -> _Open:
        if stream not in self._open:
            self.begun += 1
            self._open[stream] = _Open()
        return self._open[stream]

    def _close(self, stream: str) -> None:
        self._of(stream)
        del self._open[stream]
        self._over.add(stream)

    def _turn(self, rollout: _Open, event: TurnRecorded, time_s: float) -> None:
        if event.epoch != rollout.epoch:
            rollout.turns_before = max(rollout.turns_before, rollout.turns)
            rollout.epoch, rollout.turns = event.epoch, 0
        rollout.turns += 1
        rollout.last_s = time_s
        self.turns += 1
        self.turns_repeated += event.turn < rollout.turns_before

    def _attempt(self, stream: str, event: AttemptOpened, time_s: float) -> None:
        if stream in self._over:
            return  # taken up only to answer what it had been
        rollout = self._of(stream)
        rollout.attempts += 1
        self.attempts += 1
        if rollout.attempts > 1 and not rollout.ended:
            detail = f"by {event.worker}, from turn {event.resumed_at}"
            lost_s = time_s - rollout.last_s
            self.recoveries.append(Recovery(time_s, RecoveryKind.ROLLOUT_RETAKEN, stream, detail, lost_s))
        rollout.last_s = time_s
