"""The pure parts of grading: which tree is graded, which canaries there are, which verdict is whose."""

import ast

import pytest
from pydantic import TypeAdapter, ValidationError

from stepwell.tasks.grading.canaries import BrokenTests, with_canaries
from stepwell.tasks.grading.graded_tree import graded_tree, is_guarded
from stepwell.tasks.grading.verdict import Failure, Score, Verdict, grader_digest, verdict_key
from stepwell.tasks.task import Task

TASK = Task(
    id="t",
    family="f",
    split="train",
    difficulty=1,
    issue="",
    files={"a.py": "a\n", "tests/test_a.py": "visible\n", "setup.cfg": "kept\n"},
    hidden={"hidden/test_a.py": "hidden\n"},
    gold={"a.py": "b\n"},
    grader="calls",
    protected=("tests",),
    expected=("hidden/test_a.py::test_a",),
)


def test_changes_replace_add_and_remove() -> None:
    tree = graded_tree(TASK, {"a.py": None, "new/b.py": b"\xff"}, TASK.hidden)
    assert tree == {
        "new/b.py": b"\xff",
        "tests/test_a.py": b"visible\n",
        "setup.cfg": b"kept\n",
        "hidden/test_a.py": b"hidden\n",
    }


@pytest.mark.parametrize(
    "changed",
    [
        {"tests/test_a.py": b"x"},
        {"tests/test_a.py": None},
        {"tests/conftest.py": b"x"},
        {"conftest.py": b"x"},
        {"sub/sitecustomize.py": b"x"},
        {"pytest.ini": b"x"},
        {"setup.cfg": b"x"},
        {"setup.cfg": None},
        {"a.pth": b"x"},
        {"a.pyc": b"x"},
        {"hidden/test_a.py": b"x"},
        {"tests": b"a file in the way"},
        {"hidden": b"a file in the way"},
        {"hidden/test_a.py/x": b"a folder in the way"},
    ],
)
def test_what_is_guarded_is_as_if_it_was_never_changed(changed: dict[str, bytes | None]) -> None:
    assert graded_tree(TASK, changed, TASK.hidden) == graded_tree(TASK, {}, TASK.hidden)


def test_a_path_is_guarded_by_folder_and_not_by_prefix_of_its_name() -> None:
    assert is_guarded("tests/deep/x.py", ("tests",))
    assert not is_guarded("tests_of_mine.py", ("tests",))


def test_each_asserted_equality_gets_a_canary_opposite_the_call() -> None:
    source = (
        "def test_a():\n    assert f(1) == 2\n    assert 3 == f(2)\n    assert f(3)\n    x = f(4)\n    assert x == 4\n"
    )
    made = with_canaries({"t.py": source}, ["t.py::test_a"], seed=5)
    functions = {node.name: ast.unparse(node) for node in ast.parse(made.files["t.py"]).body if hasattr(node, "name")}
    copies = [functions[test.split("::")[1]] for test in made.canaries]
    assert made.files["t.py"].startswith(source)
    assert len(copies) == 3 + 4  # Three fixed; one, one, and both sides of the last.
    assert sum("assert f(1) == w" in text for text in copies) == 1
    assert sum("(3) == f(2)" in text for text in copies) == 1


def test_canaries_follow_classes_and_parameters() -> None:
    source = "class TestA:\n    def test_b(self):\n        self.assertEqual(f(), 1)\n"
    made = with_canaries({"t.py": source}, ["t.py::TestA::test_b[x-1]"], seed=0)
    canary = list(made.canaries)[-1]
    assert canary.startswith("t.py::TestA::test_")
    assert canary.endswith("[x-1]")
    assert made.canaries[canary] == "t.py::TestA::test_b[x-1]"


@pytest.mark.parametrize("count", [1, 8, 40])
def test_tests_of_one_function_share_a_copy_for_each_assertion_and_have_a_canary_each(count: int) -> None:
    source = "@mark.parametrize('n', range(40))\ndef test_a(n):\n    assert f(n) == 1\n    assert g(n) == 2\n"
    tests = [f"t.py::test_a[{n}]" for n in range(count)]
    made = with_canaries({"t.py": source}, tests, seed=0)
    copies = made.files["t.py"].count("mark.parametrize") - 1
    assert copies == 2
    assert sorted(filter(None, made.canaries.values())) == sorted([*tests, *tests])
    assert {name.partition("[")[2] for name, of in made.canaries.items() if of == tests[-1]} == {f"{count - 1}]"}


def test_canaries_are_a_function_of_the_seed() -> None:
    arguments = {"t.py": "def test_a():\n    assert f() == 1\n"}, ["t.py::test_a"]
    assert with_canaries(*arguments, seed=1) == with_canaries(*arguments, seed=1)
    assert with_canaries(*arguments, seed=1) != with_canaries(*arguments, seed=2)


@pytest.mark.parametrize(("hidden", "expected"), [({"t.py": "def ("}, "t.py::a"), ({"t.py": ""}, "u.py::a")])
def test_broken_tests_are_told(hidden: dict[str, str], expected: str) -> None:
    with pytest.raises(BrokenTests):
        with_canaries(hidden, [expected], seed=0)


def test_a_verdict_is_a_score_or_a_failure_and_never_a_default() -> None:
    adapter: TypeAdapter[Score | Failure] = TypeAdapter(Verdict)
    score = Score(value=0.0, outcomes={"a": "passed", "b": "missing"}, report="no")
    assert (score.passed, score.failed) == (("a",), ("b",))
    for verdict in (score, Failure(kind="infra", cause="x")):
        assert adapter.validate_json(verdict.model_dump_json()) == verdict
    for broken in ("{}", '{"type": "score"}', '{"type": "failure", "kind": "other", "cause": ""}'):
        with pytest.raises(ValidationError):
            adapter.validate_json(broken)


def test_a_verdict_belongs_to_a_task_a_tree_and_a_grader() -> None:
    assert len({verdict_key(*parts) for parts in ("abc", "xbc", "axc", "abx")}) == 4
    assert len(grader_digest()) == 64
