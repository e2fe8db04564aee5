"""Defects and the issue texts of package tasks: pure parts."""

import ast

import pytest

from stepwell.tasks.packages.issue import issue_text, statement_at
from stepwell.tasks.packages.mutations import mutations_of

SOURCE = '''"""Module."""

LIMIT = 3


def clamp(value, low=0):
    """Docs with 1 < 2."""
    if value < low and not value == 7:  # é
        return max(low, -1)
    parts = [f"{value + 1}", value[1:], True]
    return (
        value
        + low
    )


class Box:
    def size(self):
        return 0 if self.empty else min(self.a, self.b)
'''


def test_every_defect_changes_one_expression_of_one_function() -> None:
    made = mutations_of(SOURCE)
    assert len({mutation.source for mutation in made}) == len(made)
    for mutation in made:
        before, after = SOURCE.splitlines(), mutation.source.splitlines()
        differing = [number for number, pair in enumerate(zip(before, after, strict=True), 1) if pair[0] != pair[1]]
        assert differing == [mutation.line]
        ast.parse(mutation.source)


@pytest.mark.parametrize(
    ("kind", "function", "before", "after"),
    [
        ("comparison", "clamp", "value < low", "value <= low"),
        ("and_or", "clamp", "value < low and not value == 7", "value < low or not value == 7"),
        ("lost_not", "clamp", "not value == 7", "value == 7"),
        ("off_by_one", "clamp", "7", "8"),
        ("related_call", "clamp", "max(low, -1)", "min(low, -1)"),
        ("lost_minus", "clamp", "-1", "1"),
        ("slice", "clamp", "value[1:]", "value[:1]"),
        ("truth", "clamp", "True", "False"),
        (
            "branches",
            "Box.size",
            "0 if self.empty else min(self.a, self.b)",
            "min(self.a, self.b) if self.empty else 0",
        ),
    ],
)
def test_kinds_of_defects(kind: str, function: str, before: str, after: str) -> None:
    assert (kind, function, before, after) in {(m.kind, m.function, m.before, m.after) for m in mutations_of(SOURCE)}


def test_what_spans_lines_documents_or_is_no_function_is_left_alone() -> None:
    assert not {mutation.line for mutation in mutations_of(SOURCE)} & {3, 7, 11, 12, 13}


def test_the_issue_quotes_the_check_that_failed() -> None:
    tests = {"t.py": "def test_a():\n    for x in y:\n        assert f(\n            x\n        ) == 1\n"}
    text = issue_text("m", "f", tests, ["call failed", "t.py:3: AssertionError"])
    assert "`m.f`" in text
    assert "this fails:\n\n    assert f(\n        x\n    ) == 1" in text
    assert "ends with `TypeError: no`" in issue_text("m", "f", tests, ["t.py:4: TypeError: no"])


def test_a_compound_statement_is_not_quoted() -> None:
    assert statement_at("for x in y:\n    pass\n", 1) is None
