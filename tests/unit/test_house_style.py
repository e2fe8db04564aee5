"""The parts of the house style that a program can hold."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("cli", "workers", "activities", "workflows", "db", "stepwell")
MAX_LINES = 400
ONE_FILE = {"stepwell/sandbox/guest_init.py"}
"""Programs that must be one file: this one is bound into each sandbox, where nothing of ours can be imported."""
VAGUE = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "misc", "shared", "base_utils"}
"""Names that do not say what is inside."""

SAID_BY_THE_MODULE = {"main", "upgrade", "downgrade"}
"""A program's or a migration's entry: its module's docstring is its own."""

SOURCES = sorted(path for folder in (*PACKAGES, "tests", "bench") for path in (ROOT / folder).rglob("*.py"))
OURS = [path for path in SOURCES if path.relative_to(ROOT).parts[0] in PACKAGES]


def name_of(path: Path) -> str:
    """Path from the repository's root."""
    return str(path.relative_to(ROOT))


def undocumented(source: str) -> list[str]:
    """Public module, functions and classes without a docstring, as `line: name`."""
    tree = ast.parse(source)
    found = [] if ast.get_docstring(tree) else ["1: the module"]
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        is_overload = any("overload" in ast.unparse(decorator) for decorator in node.decorator_list)
        if not is_overload and node.name not in SAID_BY_THE_MODULE and not ast.get_docstring(node):
            found.append(f"{node.lineno}: {node.name}")
    return found


def test_there_are_sources_to_hold_to_the_style() -> None:
    assert {name_of(path).split("/")[0] for path in OURS} == set(PACKAGES)


def test_no_file_is_too_long_to_fit_in_the_head() -> None:
    lengths = {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    over = {name: lines for name, lines in lengths.items() if lines > MAX_LINES and name not in ONE_FILE}
    too_long = [f"{name}: {lines} lines, at most {MAX_LINES}" for name, lines in over.items()]
    assert not too_long, "\n".join(too_long)


def test_names_say_what_is_inside() -> None:
    vague = [
        name_of(path) for path in SOURCES if VAGUE & {part.removesuffix(".py") for part in path.relative_to(ROOT).parts}
    ]
    assert not vague, "\n".join(vague)


def test_everything_public_has_a_docstring() -> None:
    missing = [f"{name_of(path)}:{item}" for path in OURS for item in undocumented(path.read_text(encoding="utf-8"))]
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('"""Says."""\ndef f():\n    """Says."""\n', []),
        ('"""Says."""\ndef _f():\n    return 1\n', []),
        ('"""Says."""\ndef main():\n    return 1\n', []),
        ("X = 1\n", ["1: the module"]),
        ('"""Says."""\nasync def f():\n    return 1\nclass C:\n    pass\n', ["2: f", "4: C"]),
    ],
)
def test_undocumented_names_what_has_no_docstring(source: str, expected: list[str]) -> None:
    assert undocumented(source) == expected
