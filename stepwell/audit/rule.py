"""What a rule of an audit is: a module with a function that looks at a record."""

from typing import Protocol, TypeVar

from stepwell.audit.finding import RuleResult, Tally

RecordT = TypeVar("RecordT")
RecordT_contra = TypeVar("RecordT_contra", contravariant=True)


class RuleOf(Protocol[RecordT_contra]):
    """What a module that holds a rule has. The rule's name is the module's."""

    __name__: str

    @property
    def HOLDS(self) -> str:
        """What it holds, in words."""
        ...

    @property
    def UNIT(self) -> str:
        """What it counts."""
        ...

    @staticmethod
    def check(record: RecordT_contra, tally: Tally) -> None:
        """Applies the rule."""
        ...


def applied(rule: RuleOf[RecordT], record: RecordT) -> RuleResult:
    """What a rule says of a record."""
    tally = Tally()
    rule.check(record, tally)
    return RuleResult(
        rule=rule.__name__.rpartition(".")[2],
        holds=rule.HOLDS,
        checked=tally.checked,
        unit=rule.UNIT,
        findings=tuple(tally.findings),
    )
