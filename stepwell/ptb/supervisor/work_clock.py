"""The agent's clock, which counts only while it can work; and the lease that decides whether it can."""

from typing import Literal

OVER_FACTOR = 10
"""A lease that was not renewed for so many times its length is over: nobody is coming."""

LeaseState = Literal["held", "lapsed", "over"]


class WorkClock:
    """Seconds worked, of readings of any clock that never goes back. It stands when it is made.

    Args:
        budget_s: How long it may run in all.
        now: Reading at which it is made.
    """

    def __init__(self, budget_s: float, now: float) -> None:
        self.budget_s = budget_s
        self._worked_s = 0.0
        self._stood_s = 0.0
        self._since = now
        self._runs = False

    def run(self, now: float) -> None:
        """Counts from here on."""
        self._turn(now, runs=True)

    def stand(self, now: float) -> None:
        """Stands still from here on."""
        self._turn(now, runs=False)

    def worked_s(self, now: float) -> float:
        """Time that counted."""
        return self._worked_s + (now - self._since if self._runs else 0.0)

    def stood_s(self, now: float) -> float:
        """Time that did not."""
        return self._stood_s + (0.0 if self._runs else now - self._since)

    def remaining_s(self, now: float) -> float:
        """What is left of the budget, 0 at the least."""
        return max(0.0, self.budget_s - self.worked_s(now))

    def _turn(self, now: float, *, runs: bool) -> None:
        self._worked_s, self._stood_s = self.worked_s(now), self.stood_s(now)
        self._since, self._runs = now, runs


class Lease:
    """Whether somebody still wants the agent.

    Args:
        lease_s: How long a renewal holds.
        now: Reading at which the lease is first held.
    """

    def __init__(self, lease_s: float, now: float) -> None:
        self.lease_s = lease_s
        self._renewed = now

    def renew(self, now: float) -> None:
        """Holds it from now on."""
        self._renewed = now

    def state(self, now: float) -> LeaseState:
        """At a reading of the clock."""
        age_s = now - self._renewed
        if age_s <= self.lease_s:
            return "held"
        return "lapsed" if age_s <= OVER_FACTOR * self.lease_s else "over"
