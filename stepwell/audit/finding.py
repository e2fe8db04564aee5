"""What a rule says: how much it checked, and what does not hold."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that does not hold."""

    stream: str
    """Stream of the event that breaks the rule."""
    seq: int | None
    """Its place in the stream; None where a whole stream is missing or too much."""
    what: str
    """What was found, and what was wanted."""

    def __str__(self) -> str:
        return f"{self.stream}{'' if self.seq is None else f' #{self.seq}'}: {self.what}"


@dataclass(frozen=True, slots=True)
class RuleResult:
    """Outcome of one rule."""

    rule: str
    """Its name."""
    holds: str
    """What it holds, in words."""
    checked: int
    """Things that it looked at."""
    unit: str
    """What they are."""
    findings: tuple[Finding, ...]
    """In the order in which they were met; empty where the rule holds."""


@dataclass(slots=True)
class Tally:
    """Gathers what a rule finds."""

    checked: int = 0
    findings: list[Finding] = field(default_factory=list[Finding])

    def expect(self, condition: bool, stream: str, seq: int | None, what: str) -> None:
        """Counts one check, and keeps it if it does not hold."""
        self.checked += 1
        if not condition:
            self.findings.append(Finding(stream, seq, what))
