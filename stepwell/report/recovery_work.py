"""What recoveries cost, from the ledger alone.

A retaken rollout loses the time from its last recorded event to its next attempt: the turn that was under way, the
time until its worker's death was noticed, and the time until another took it up. A rollout that a pause held is taken
up by a new attempt too; that is no recovery, and is counted apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from stepwell.events import HoldRaised, OperatorActed
from stepwell.report.rollouts import Recovery, Rollouts

Window = tuple[float, float]
"""From and to, in seconds since the epoch."""


@dataclass(frozen=True)
class RecoveryWork:
    """Attempts at rollouts, and what was done over."""

    attempts: int
    """Attempts at rollouts that were opened."""
    after_pauses: int
    """Of them, those that went on after a pause."""
    turns: int
    """Turns recorded."""
    turns_repeated: int
    """Of them, those that had been recorded in an earlier epoch: the rollout was started over."""
    recoveries: int
    """Recoveries of which the ledger tells how long they took."""
    lost_s: float
    """Seconds from the last recorded event to the next attempt, over all of them."""
    longest_s: float
    """Of one."""

    def words(self) -> str:
        """The figures in a line."""
        line = f"{self.attempts:,} attempts, {self.turns:,} turns recorded, {self.turns_repeated:,} of them repeated"
        line += f", {self.after_pauses:,} attempts after a pause" if self.after_pauses else ""
        if not self.recoveries:
            return line
        return (
            f"{line}; {self.recoveries:,} recoveries lost {self.lost_s:.1f} s, "
            f"{self.lost_s / self.recoveries:.1f} s each, the longest {self.longest_s:.1f} s"
        )


def recovery_work(rollouts: Rollouts, recoveries: Sequence[Recovery]) -> RecoveryWork:
    """What recoveries cost.

    Args:
        rollouts: Of the run.
        recoveries: Those of them, and of the trainer, that are none of a pause's.
    """
    lost = [recovery.lost_s for recovery in recoveries if recovery.lost_s is not None]
    own = len(set(rollouts.retaken) & set(recoveries))
    return RecoveryWork(
        attempts=rollouts.attempts,
        after_pauses=len(rollouts.retaken) - own,
        turns=rollouts.turns,
        turns_repeated=rollouts.turns_repeated,
        recoveries=len(lost),
        lost_s=sum(lost),
        longest_s=max(lost, default=0.0),
    )


def is_after_pause(recovery: Recovery, windows: Sequence[Window]) -> bool:
    """Whether a pause at once was in force between the last recorded event and the new attempt."""
    if recovery.lost_s is None:
        return False
    return any(began <= recovery.time_s and ended >= recovery.time_s - recovery.lost_s for began, ended in windows)


def pause_windows(
    acts: Sequence[tuple[float, OperatorActed]], raised: Sequence[tuple[float, HoldRaised]]
) -> list[Window]:
    """When no new turn began, by an operator's pause or by a limit that was reached.

    Args:
        acts: What operators did, with when, in order.
        raised: What waited for them, with when, in order.
    """
    told = sorted([*acts, *raised], key=lambda each: each[0])
    windows, holding = list[Window](), dict[str, float]()
    for time_s, event in told:
        if isinstance(event, HoldRaised):
            if event.hold.startswith("limit/"):
                holding.setdefault(event.hold, time_s)
            continue
        match event.action:
            case "pause" if event.arguments.get("at") == "now":
                holding.setdefault("pause", time_s)
            case "resume":
                windows += [(holding.pop("pause"), time_s)] if "pause" in holding else []
            case "limit":
                name = f"limit/{event.arguments.get('limit')}"
                windows += [(holding.pop(name), time_s)] if name in holding else []
            case "stop":
                windows += [(began, time_s) for began in holding.values()]
                holding.clear()
            case _:
                pass
    return windows + [(began, float("inf")) for began in holding.values()]
