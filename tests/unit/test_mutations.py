"""Where defects are put, and that each changes exactly its span."""

import ast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stepwell.tasks.packages.mutation_kinds import KINDS
from stepwell.tasks.packages.mutations import Mutation, mutations_of
from stepwell.tasks.packages.source_text import Edit, is_other_program, spliced

SOURCE = '''"""Module with 1 < 2."""

LIMIT = 3 + 4


@cache(1)
def clamp(value: "int" = 2, low=None):
    """Docs with 1 < 2."""
    if value < low and not value == 7:  # é < ü
        return max(low, -1)
    text = f"{value + 1}"
    return (
        value
        +  # plus
        low
    )


class Box:
    SIZE = 1 + 1

    async def size(self):
        def inner(count=1):
            return count + 1

        return inner()
'''


def shown(mutation: Mutation) -> tuple[str, str]:
    """What stood there, and what stands there now."""
    data = SOURCE.encode()
    return data[mutation.edit.start : mutation.edit.end].decode(), mutation.edit.text


def test_places_are_those_of_the_source_whatever_stands_before_them() -> None:
    found = {(one.kind, one.function, one.line, *shown(one)) for one in mutations_of(SOURCE)}
    assert ("boundary_moved", "clamp", 9, "<", "<=") in found
    assert ("condition_negated", "clamp", 9, "not ", "") in found
    assert ("method_swapped", "clamp", 10, "max", "min") in found
    assert ("arithmetic_swapped", "clamp", 14, "+", "-") in found
    assert ("default_changed", "clamp", 7, "2", "3") in found
    assert ("default_changed", "Box.size.<locals>.inner", 23, "1", "2") in found


def test_documentation_decorators_annotations_f_strings_and_what_is_no_function_are_left_alone() -> None:
    lines = {mutation.line for mutation in mutations_of(SOURCE)}
    assert not lines & {1, 3, 6, 8, 11, 20}


def test_a_default_is_traced_by_the_body_and_a_condition_by_its_own_lines() -> None:
    by_line = {mutation.line: mutation.traced for mutation in mutations_of(SOURCE) if mutation.function == "clamp"}
    assert by_line[7].start == 8
    assert list(by_line[9]) == [9]
    assert list(by_line[14]) == [12, 13, 14, 15, 16]


def test_a_splice_leaves_every_other_byte() -> None:
    assert spliced("é = 1\r\n\tü\f", Edit(5, 6, "22")) == "é = 22\r\n\tü\f"


@pytest.mark.parametrize(
    ("changed", "other"), [("x = 2\n", True), ("x =  1\n", False), ("x = (1)  # one\n", False), ("x = \n", False)]
)
def test_another_program_is_one_that_parses_to_another_tree(changed: str, other: bool) -> None:
    assert is_other_program("x = 1\n", changed) is other


@pytest.mark.parametrize("source", ["\ufeffdef f():\n    return 1 + 1\n", "def f():\r    return 1 + 1\r"])
def test_sources_whose_places_the_parser_counts_otherwise_get_no_defect(source: str) -> None:
    assert mutations_of(source) == []


NAMES = st.sampled_from(["a", "b", "ä", "items"])
ATOMS = st.one_of(NAMES, st.integers(-3, 300).map(str), st.sampled_from(["True", "''", "' '", "None", "1.5", "b'x'"]))


def expressions() -> st.SearchStrategy[str]:
    """Atoms, and what two or three of them make, nested twice at most."""
    made = ATOMS
    for _ in range(2):
        made = st.builds(str.format, st.sampled_from(FORMS), made, made, made)
    return made | ATOMS


FORMS = (
    *(f"({{}} {operator} {{}})" for operator in ("+", "-", "*", "//", "%", "**", "<", "==", "in", "is not", "not  in")),
    *("({} and {} or {})", "(not ({}))", "(-\t{})", "f({} , {})", "max({},\n        {},  # ö\n        key={})"),
    *(
        "ä.get({}, {})",
        "ä[{}:{}]",
        "({} if {} else {})",
        "ä.strip().startswith({})",
        "({}).strip()",
        "f'{{ä + 1}}'",
        "{}",
    ),
)
EXPRESSIONS = expressions()
STATEMENTS = st.one_of(
    EXPRESSIONS.map("return {}".format),
    EXPRESSIONS.map("if {}: raise ValueError('ß')".format),
    EXPRESSIONS.map("a, b = {}, 1".format),
    EXPRESSIONS.map("while {}: break".format),
    EXPRESSIONS.map("items.append({})".format),
    EXPRESSIONS.map("a += {}".format),
    EXPRESSIONS.map("'''é'''; a = {}".format),
)


@example(["return ä.get((a + a), f(a , a))"], "\n")
@example(["return (a + b).strip()"], "\n")
@example(["return ((a + a) + (a - a))"], "\n")
@given(st.lists(STATEMENTS, min_size=1, max_size=4), st.sampled_from(["\n", "\r\n"]))
def test_every_defect_changes_its_span_alone_and_still_parses(statements: list[str], newline: str) -> None:
    lines = [
        "# ä",
        "def f(a, b='ö', *, items=3):",
        *("    " + line for statement in statements for line in [statement]),
    ]
    source = newline.join("\n".join(lines).split("\n")) + newline
    ast.parse(source)
    before = source.encode()
    found = mutations_of(source)
    assert len({mutation.edit for mutation in found}) == len(found)
    for mutation in found:
        edit = mutation.edit
        after = spliced(source, edit).encode()
        ast.parse(after.decode())
        assert after[: edit.start] == before[: edit.start]
        assert after[edit.start + len(edit.text.encode()) :] == before[edit.end :]
        assert before[edit.start : edit.end].decode() != edit.text
        assert mutation.line == before[: edit.start].count(b"\n") + 1


def test_the_kinds_have_names_of_their_own() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS) >= 12
