"""The compact tools: what each action does, and what a mistake is answered by."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.agent.compact import CompactTools, find_token, numbered
from stepwell.agent.protocol import Action
from stepwell.policy.micro.repair import repair_of
from stepwell.policy.micro.trusted_sandbox import TrustedSandbox, completed
from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.sandbox.protocol import SandboxLimits
from stepwell.tasks.forge import forged_task
from stepwell.tasks.task import Task

TOOLS = CompactTools()


def two_module_task() -> Task:
    return Task(
        id="t/1",
        family="t",
        split="train",
        difficulty=1,
        issue="add(1, 2) gives -1, expected 3.",
        files={
            "README.md": "# Two\n",
            "sums.py": "def add(a, b):\n    return a - b\n\n\ndef same(a):\n    return a + a\n",
            "pkg/words.py": 'def greet(name):\n    return "a" + name\n',
            "tests/test_sums.py": "from sums import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n",
        },
        hidden={"tests/test_hidden.py": "from sums import add\n\n\ndef test_0():\n    assert add(2, 2) == 4\n"},
        gold={"sums.py": "def add(a, b):\n    return a + b\n\n\ndef same(a):\n    return a + a\n"},
        grader="calls",
        expected=("tests/test_hidden.py::test_0",),
    )


def told(sandbox: TrustedSandbox, task: Task, text: str) -> str:
    return completed(TOOLS.run(TOOLS.parse(text), sandbox, task)).text


def test_view_numbers_lines_on_from_module_to_module_and_leaves_blank_ones_out():
    task = two_module_task()
    assert told(TrustedSandbox(task), task, "view") == (
        '# pkg/words.py\n L1 def greet(name):\n L2     return "a" + name\n'
        "# sums.py\n L3 def add(a, b):\n L4     return a - b\n L7 def same(a):\n L8     return a + a"
    )


def test_view_of_a_path_shows_the_file_as_it_is():
    task = two_module_task()
    assert told(TrustedSandbox(task), task, "view README.md") == "# Two\n"
    assert told(TrustedSandbox(task), task, "view ../secret") == "error: no ../secret"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("same", "# sums.py\n L7 def same(a):\n L8     return a + a"),
        ("greet", '# pkg/words.py\n L1 def greet(name):\n L2     return "a" + name'),
        ("gree", "error: no gree"),
        ("a", "error: no a"),
    ],
)
def test_view_of_a_name_shows_that_definition_alone(name: str, shown: str):
    task = two_module_task()
    assert told(TrustedSandbox(task), task, f"view {name}") == shown


@pytest.mark.parametrize(
    ("action", "answer", "path", "line"),
    [
        ("sub L4 - +", " L4     return a + b", "sums.py", "    return a + b"),
        ("sub L8 a b 2", " L8     return a + b", "sums.py", "    return a + b"),
        ("sub L4 a - b => b - a", " L4     return b - a", "sums.py", "    return b - a"),
        ('sub L2 "a" "b"', ' L2     return "b" + name', "pkg/words.py", '    return "b" + name'),
    ],
)
def test_sub_replaces_one_token_of_one_line(action: str, answer: str, path: str, line: str):
    task = two_module_task()
    sandbox = TrustedSandbox(task)
    assert told(sandbox, task, action) == answer
    changed = completed(sandbox.changed_files())
    assert set(changed) == {path}
    assert line in sandbox.files[path].split("\n")


@pytest.mark.parametrize(
    ("action", "answer"),
    [
        ("sub L9 - +", "error: no line L9"),
        ("sub L0 - +", "error: no line L0"),
        ("sub L4 * +", "error: no * in L4"),
        ("sub L8 a b", "error: 2 times a in L8"),
        ("sub L8 a b 3", "error: 2 times a in L8"),
        ("sub L4 -", "error: no such action"),
        ("view a b", "error: no such action"),
        ("rm -rf /", "error: no such action"),
        ("", "error: no such action"),
    ],
)
def test_a_mistake_is_answered_and_changes_nothing(action: str, answer: str):
    task = two_module_task()
    sandbox = TrustedSandbox(task)
    assert told(sandbox, task, action) == answer
    assert sandbox.files == task.files


def test_test_tells_whether_the_visible_tests_pass():
    task = forged_task(1, "train", 0)
    sandbox = TrustedSandbox(task)
    assert told(sandbox, task, "test").startswith("failed: AssertionError: ")
    for path, text in task.gold.items():
        sandbox.files[path] = text
    assert told(sandbox, task, "test") == "passed"


def test_done_ends_the_episode():
    task = two_module_task()
    observation = completed(TOOLS.run(TOOLS.parse("done"), TrustedSandbox(task), task))
    assert observation.finished


@given(st.text())
def test_parse_never_raises(text: str):
    assert isinstance(TOOLS.parse(text), Action)


@pytest.mark.parametrize(
    ("line", "old", "count"),
    [("n = name + n", "n", 2), ("a <= b", "<", 0), ("x[:-1]", ":-1", 1), ("a**b", "*", 0), ("f('n', n)", "n", 1)],
)
def test_tokens_are_those_of_python(line: str, old: str, count: int):
    spans = find_token(line, old)
    assert len(spans) == count
    assert all(line[start:end] == old for start, end in spans)


@given(st.lists(st.text(alphabet="ab \n", max_size=12), max_size=4))
def test_numbers_are_consecutive_and_rows_find_their_line(sources: list[str]):
    files = {f"m{index}.py": source for index, source in enumerate(sources)}
    lines = numbered(files)
    assert [line.number for line in lines] == list(range(1, len(lines) + 1))
    assert all(files[line.path].split("\n")[line.row] == line.text for line in lines)


@pytest.mark.parametrize("index", [0, 10, 200, 404])
async def test_the_sandbox_of_demonstrations_answers_as_a_real_one_does(tmp_path: Path, index: int):
    task = forged_task(1, "train", index)
    right = repair_of(task)
    actions = ["view", "test", "sub L1 - +", "sub L999 - +", right.action, "test", "view", "view README.md"]
    # Breaks the syntax, a name, and the module that the test imports.
    actions += [f"sub L{right.line} return retrun", "sub L1 def (", "test", "view"]
    factory = BubblewrapFactory(tmp_path)
    try:
        real = await factory.create({path: text.encode() for path, text in task.files.items()}, SandboxLimits())
        trusted = TrustedSandbox(task)
        for action in actions:
            in_memory = told(trusted, task, action)
            inside = (await TOOLS.run(TOOLS.parse(action), real, task)).text
            if inside.startswith("failed: SyntaxError"):
                # The file's name within the message differs; demonstrations never break the syntax.
                inside, in_memory = inside.partition(" (")[0], in_memory.partition(" (")[0]
            assert inside == in_memory, action
        assert await real.changed_files() == await trusted.changed_files()
    finally:
        await factory.close()
