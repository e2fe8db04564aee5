"""Adds up what an agent used, and notes the limits that it met, from the lines that it writes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime

from stepwell.ptb.supervisor.records import LimitSeen
from stepwell.ptb.supervisor.rules import LimitRule, Prices, UsageRule

LIMITS_KEPT = 100
EXCERPT = 200
"""Characters kept on each side of what shows a limit."""
_COUNTED = ("input", "output", "cached")


@dataclass(frozen=True)
class Use:
    """Tokens, and US dollars."""

    input: int = 0
    output: int = 0
    cached: int = 0
    cost: float = 0.0

    @property
    def tokens(self) -> int:
        """Of all kinds."""
        return self.input + self.output + self.cached

    def plus(self, other: "Use") -> "Use":
        """Both together."""
        return Use(**{field.name: getattr(self, field.name) + getattr(other, field.name) for field in fields(self)})


class Meter:
    """The use of one agent.

    Args:
        usage: How use is read.
        limits: How limits are.
        prices: What tokens cost, where no rule reads a cost.
    """

    def __init__(self, usage: Sequence[UsageRule], limits: Sequence[LimitRule], prices: Prices | None) -> None:
        self._usage = [(rule, re.compile(rule.pattern)) for rule in usage]
        self._limits = [(rule, re.compile(rule.pattern)) for rule in limits]
        self._prices = prices
        self._before = Use()
        self._read: dict[tuple[int, str], Use] = {}
        self.limits: list[LimitSeen] = []
        """In the order in which they were seen, at most `LIMITS_KEPT`."""

    def begin_prompt(self) -> None:
        """What lines tell in all begins anew; what was read so far stays counted."""
        self._before = self.used()
        self._read.clear()

    def used(self) -> Use:
        """All that was read so far."""
        total = self._before
        for use in self._read.values():
            total = total.plus(use)
        return total

    def read(self, line: str, when: datetime) -> bool:
        """Takes in a line; whether it told anything of use or of limits."""
        told = False
        for number, (rule, pattern) in enumerate(self._usage):
            found = pattern.search(line)
            if found is not None:
                self._count(number, rule, found)
                told = True
        for rule, pattern in self._limits:
            found = pattern.search(line)
            if found is not None:
                told = True
                if len(self.limits) < LIMITS_KEPT:
                    excerpt = line[max(0, found.start() - EXCERPT) : found.end() + EXCERPT]
                    self.limits.append(LimitSeen(kind=rule.kind, time=when, text=excerpt))
        return told

    def _count(self, number: int, rule: UsageRule, found: re.Match[str]) -> None:
        identity = found.groupdict().get("id")
        if rule.counts == "each" and identity is None:
            self._before = self._before.plus(self._use(found))
        else:  # what comes to the same place later replaces it
            self._read[(number, identity or "")] = self._use(found)

    def _use(self, found: re.Match[str]) -> Use:
        groups = found.groupdict()
        counts = {name: int(groups.get(name) or 0) for name in _COUNTED}
        if self._prices is None:
            return Use(**counts, cost=float(groups.get("cost") or 0.0))
        cost = sum(count * getattr(self._prices, name) for name, count in counts.items()) / 1e6
        return Use(**counts, cost=cost)
