"""The forged task that every cheat is tried on, and the other forms that its hidden tests take."""

import ast
import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

from stepwell.tasks.forge import ForgeCounts, forge
from stepwell.tasks.task import Task

TestsForm = Literal["plain", "two files", "unittest"]
Grader = Literal["calls", "pytest"]
HIDDEN = "tests/test_hidden.py"
SECOND = "tests/test_second.py"
SEED = 11
CANDIDATES = 60


@dataclass(frozen=True)
class Target:
    """A forged task with one module and one function under test, which gives whole numbers."""

    task: Task
    module: str
    function: str

    @property
    def words(self) -> dict[str, str]:
        """What the texts of cheats call by name."""
        return {
            "MODULE": self.module,
            "FUNCTION": self.function,
            "BROKEN": self.task.files[f"{self.module}.py"],
            "HIDDEN": HIDDEN,
        }


@cache
def target() -> Target:
    """The first forged task of that kind."""
    counts = ForgeCounts(train=CANDIDATES, validation=0, confirm=0, heldout_family=0)
    for task in forge(SEED, counts).train:
        imports = re.findall(r"^from (\w+) import (\w+)$", task.hidden[HIDDEN], re.MULTILINE)
        results = re.findall(r"== (.*)$", task.hidden[HIDDEN], re.MULTILINE)
        if len(imports) == 1 and all(re.fullmatch(r"-?\d+", result) for result in results):
            return Target(task, *imports[0])
    raise AssertionError(f"none of {CANDIDATES} forged tasks has one module and whole numbers; raise CANDIDATES")


def task_for(form: TestsForm, grader: Grader, timeout_s: float) -> Task:
    """The target's task with its hidden tests in another form."""
    task = target().task
    source = task.hidden[HIDDEN]
    hidden, expected = {HIDDEN: source}, list(task.expected)
    if form == "two files":
        hidden, expected = _in_two(source)
    elif form == "unittest":
        hidden, expected = _as_unittest(source)
    changes = {"hidden": hidden, "expected": tuple(expected), "grader": grader, "timeout_s": timeout_s}
    return Task.model_validate(task.model_dump() | changes)


def _in_two(source: str) -> tuple[dict[str, str], list[str]]:
    functions = _functions(source)
    head = source[: source.index("def test_")]
    half = len(functions) // 2
    hidden = {
        HIDDEN: head + "\n\n".join(functions[:half]) + "\n",
        SECOND: head + "\n\n".join(functions[half:]) + "\n",
    }
    return hidden, [f"{path}::{name}" for path, text in hidden.items() for name in re.findall(r"def (test_\w+)", text)]


def _as_unittest(source: str) -> tuple[dict[str, str], list[str]]:
    head = source[: source.index("def test_")]
    text = head + "import unittest\n\n\nclass TestHidden(unittest.TestCase):\n"
    names: list[str] = []
    for function in _functions(source):
        name, left, right = re.findall(r"def (test_\w+)\(\):\s+assert (.*) == (.*)", function)[0]
        text += f"    def {name}(self):\n        self.assertEqual({left}, {right})\n\n"
        names.append(f"{HIDDEN}::TestHidden::{name}")
    return {HIDDEN: text}, names


def _functions(source: str) -> list[str]:
    return [ast.unparse(node) for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
