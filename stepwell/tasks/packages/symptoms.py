"""What a defect does as seen from outside: a call, what it should give, and what it gives. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile

from stepwell.tasks.packages.recording import RecordedCall, RecordedTest

ELIDED = "…"
OPERATORS = {
    "__getitem__": "{0}[{1}]",
    "__delitem__": "del {0}[{1}]",
    "__setitem__": "{0}[{1}] = {2}",
    "__contains__": "{1} in {0}",
    "__len__": "len({0})",
    "__str__": "str({0})",
    "__repr__": "repr({0})",
    "__bool__": "bool({0})",
    "__hash__": "hash({0})",
    "__iter__": "iter({0})",
    "__next__": "next({0})",
    "__eq__": "{0} == {1}",
    "__ne__": "{0} != {1}",
    "__lt__": "{0} < {1}",
    "__le__": "{0} <= {1}",
    "__gt__": "{0} > {1}",
    "__ge__": "{0} >= {1}",
    "__add__": "{0} + {1}",
    "__sub__": "{0} - {1}",
    "__mul__": "{0} * {1}",
    "__or__": "{0} | {1}",
    "__and__": "{0} & {1}",
}
"""How calls of special methods are written."""


@dataclass(frozen=True)
class Symptom:
    """One difference that a caller sees."""

    call: str
    """The call as it would be written."""
    package: str
    """Top-level package that it is from."""
    expected: str | None
    """What it should give; None if that cannot be shown, but is no exception."""
    came: str | None
    """What it gives; None likewise."""

    @property
    def rank(self) -> tuple[int, int, str]:
        """Order of telling: what is wholly shown first, then what is short."""
        text = f"{self.call} {self.expected} {self.came}"
        # An assertion that fails may be one that the test put into a function of its own.
        hidden = text.count(ELIDED) + (self.expected is None) + (self.came is None) + text.count("AssertionError")
        return hidden, len(text), text


def symptom_of(right: RecordedTest, wrong: RecordedTest) -> Symptom | None:
    """The first call of a test that went differently with the defect; None if no call shows it."""
    same = takewhile(
        lambda pair: (pair[0].name, pair[0].arguments) == (pair[1].name, pair[1].arguments),
        zip(right.calls, wrong.calls, strict=False),
    )
    for good, bad in same:
        expected, came = outcome_of(good), outcome_of(bad)
        if expected != came and not (good.returned and bad.returned and None in (expected, came)):
            return Symptom(written(good), good.name.partition(".")[0].partition(":")[0], expected, came)
    return None


def symptoms(right: Mapping[str, RecordedTest], wrong: Mapping[str, RecordedTest]) -> list[Symptom]:
    """Distinct symptoms of the tests that failed, those that tell most in few words first."""
    return sorted(set(_found(right, wrong)), key=lambda symptom: symptom.rank)


def _found(right: Mapping[str, RecordedTest], wrong: Mapping[str, RecordedTest]) -> Iterator[Symptom]:
    for test, said in wrong.items():
        if (said.failed or not said.passed) and test in right:
            found = symptom_of(right[test], said)
            if found is not None:
                yield found


def outcome_of(call: RecordedCall) -> str | None:
    """What a call gave, as `raises …`, `is …` or `gives …, … in turn`; None if it cannot be shown."""
    if call.error is not None:
        return f"raises `{call.error}`"
    if call.yields or call.result == "list":
        shown = [value for value in call.yields if value is not None]
        if len(shown) < len(call.yields):
            return None
        return f"yields `[{', '.join(shown)}]`" if call.returned else f"yields `{', '.join(shown)}, ...`"
    if call.result == "":
        return "raises nothing"
    return None if call.result is None else f"returns `{call.result}`"


def written(call: RecordedCall) -> str:
    """A call as Python."""
    qualified = call.name.partition(":")[2]
    owner, _, name = qualified.rpartition(".")
    arguments = list(call.arguments)
    if owner and name in ("__init__", "__new__"):
        return f"{owner}({', '.join(arguments[1:])})"
    if not call.bound or not arguments:
        return f"{qualified}({', '.join(arguments)})"
    subject = arguments[0] if arguments[0] != ELIDED else f"<{owner}>"
    if name in OPERATORS and len(arguments) == 1 + max(int(digit) for digit in OPERATORS[name] if digit.isdigit()):
        return OPERATORS[name].format(subject, *arguments[1:])
    if name == "__call__":
        return f"{subject}({', '.join(arguments[1:])})"
    return f"{subject}.{name}({', '.join(arguments[1:])})"
