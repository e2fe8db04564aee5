"""The CodeAct tools: what is understood of a turn's text, and what they do in a real sandbox."""

import json
from collections.abc import AsyncIterator

import pytest

from stepwell.agent.codeact import CodeActTools
from stepwell.agent.protocol import Action
from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.sandbox.protocol import Sandbox, SandboxLimits
from stepwell.tasks.task import Task

FILES = {"app.py": b"one\ntwo\nthree\ntwo\n", "pkg/data.bin": b"\xff\xfe"}
TASK = Task(
    id="t",
    family="f",
    split="train",
    difficulty=1,
    issue="",
    files={"app.py": ""},
    hidden={},
    gold={},
    grader="pytest",
    expected=(),
)
TOOLS = CodeActTools(command_timeout_s=5.0, observation_chars=2000)


@pytest.fixture(scope="module")
async def factory(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BubblewrapFactory]:
    made = BubblewrapFactory(tmp_path_factory.mktemp("sandboxes"))
    yield made
    await made.close()


@pytest.fixture
async def sandbox(factory: BubblewrapFactory) -> AsyncIterator[Sandbox]:
    made = await factory.create(FILES, SandboxLimits())
    yield made
    await made.destroy()


async def call(sandbox: Sandbox, tool: str, **arguments: object) -> str:
    """Observation of a call that goes through its text form."""
    text = f"I will.\n<tool_call>\n{json.dumps({'name': tool, 'arguments': arguments})}\n</tool_call>"
    return (await TOOLS.run(TOOLS.parse(text), sandbox, TASK)).text


def test_a_call_is_found_in_the_text() -> None:
    call_text = '{"name": "execute_bash", "arguments": {"command": "ls", "timeout": 3}}'
    text = f"Let me look.\n<tool_call>\n{call_text}\n</tool_call>"
    assert TOOLS.parse(text) == Action("execute_bash", {"command": "ls", "timeout": "3"})


def test_plain_line_breaks_in_strings_are_understood() -> None:
    text = '<tool_call>{"name": "think", "arguments": {"thought": "a\nb"}}</tool_call>'
    assert TOOLS.parse(text) == Action("think", {"thought": "a\nb"})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no <tool_call>"),
        ("<tool_call>ls</tool_call>", "no JSON object"),
        ("<tool_call>[1]</tool_call>", "no JSON object"),
        ("<tool_call>" + "[" * 100_000, "no JSON object"),
        ('<tool_call>{"name": "rm"}</tool_call>', "no function 'rm'"),
        ('<tool_call>{"name": ["think"]}</tool_call>', "no function"),
        ('<tool_call>{"name": "think", "arguments": "x"}</tool_call>', "must be a JSON object"),
        ('<tool_call>{"name": "think", "arguments": {}}</tool_call>', "needs the argument 'thought'"),
        ('<tool_call>{"name": "finish", "arguments": {"message": "", "x": 1}}</tool_call>', "no argument 'x'"),
    ],
)
async def test_a_malformed_call_is_an_observation(sandbox: Sandbox, text: str, reason: str) -> None:
    action = TOOLS.parse(text)
    assert action.tool == "invalid"
    observation = await TOOLS.run(action, sandbox, TASK)
    assert reason in observation.text
    assert not observation.finished


def test_the_system_prompt_names_every_tool() -> None:
    for name in ("execute_bash", "str_replace_editor", "think", "finish", "<tool_call>"):
        assert name in TOOLS.system_prompt()


async def test_finish_ends_the_episode(sandbox: Sandbox) -> None:
    assert (await TOOLS.run(Action("finish", {"message": "done"}), sandbox, TASK)).finished


async def test_folder_environment_and_functions_carry_over(sandbox: Sandbox) -> None:
    await call(sandbox, "execute_bash", command="cd pkg; export NAME=value; greet() { echo hi $NAME; }; exit 3")
    said = await call(sandbox, "execute_bash", command="pwd; greet")
    assert said == "/work/pkg\nhi value\n[Command finished with exit code 0]"


async def test_a_command_that_hangs_or_fails_is_told(sandbox: Sandbox) -> None:
    assert await call(sandbox, "execute_bash", command="sleep 60", timeout=0.3) == "[Command was stopped after 0.3 s]"
    assert await call(sandbox, "execute_bash", command="printf x; false") == "x\n[Command finished with exit code 1]"
    assert "Error: timeout" in await call(sandbox, "execute_bash", command="ls", timeout="soon")
    assert "no command is waiting" in await call(sandbox, "execute_bash", command="y", is_input="true")


async def test_long_observations_keep_head_and_tail(sandbox: Sandbox) -> None:
    said = await call(sandbox, "execute_bash", command="seq 5000")
    assert said.startswith("1\n2\n")
    assert said.endswith("5000\n[Command finished with exit code 0]")
    assert "characters left out" in said
    assert len(said) < 2100


async def test_the_editor_views_files_ranges_and_folders(sandbox: Sandbox) -> None:
    assert "     2\ttwo" in await call(sandbox, "str_replace_editor", command="view", path="/work/app.py")
    said = await call(sandbox, "str_replace_editor", command="view", path="app.py", view_range=[2, 3])
    assert said == "Here is /work/app.py:\n     2\ttwo\n     3\tthree"
    listing = await call(sandbox, "str_replace_editor", command="view", path="/work")
    assert listing.splitlines()[1:] == ["/work/app.py", "/work/pkg/", "/work/pkg/data.bin"]


async def test_the_editor_creates_replaces_and_inserts(sandbox: Sandbox) -> None:
    await call(sandbox, "str_replace_editor", command="create", path="/work/new/a.py", file_text="x = 1\n")
    await call(sandbox, "str_replace_editor", command="str_replace", path="/work/new/a.py", old_str="1", new_str="2")
    said = await call(
        sandbox, "str_replace_editor", command="insert", path="/work/new/a.py", insert_line=0, new_str="#"
    )
    assert "     1\t#\n     2\tx = 2" in said
    assert await sandbox.changed_files() == {"new/a.py": b"#\nx = 2\n"}


async def test_edits_are_undone_one_after_the_other(sandbox: Sandbox) -> None:
    for old, new in (("one", "1"), ("three", "3")):
        await call(sandbox, "str_replace_editor", command="str_replace", path="app.py", old_str=old, new_str=new)
    await call(sandbox, "execute_bash", command="echo four >> app.py")
    said = await call(sandbox, "str_replace_editor", command="undo_edit", path="/work/app.py")
    assert said.splitlines()[1:4] == ["     1\t1", "     2\ttwo", "     3\tthree"]
    await call(sandbox, "str_replace_editor", command="undo_edit", path="app.py")
    assert await sandbox.changed_files() == {}, "the file is as it was, whatever else changed it"
    said = await call(sandbox, "str_replace_editor", command="undo_edit", path="app.py")
    assert said == "Error: there is no edit of /work/app.py to undo."


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"command": "view", "path": "/etc/passwd"}, "is not in /work"),
        ({"command": "view", "path": "../x"}, "is not in /work"),
        ({"command": "view", "path": "missing"}, "no file or folder"),
        ({"command": "view", "path": "app.py", "view_range": [9, 1]}, "view_range must be"),
        ({"command": "view", "path": "app.py", "view_range": "x"}, "view_range must be"),
        ({"command": "create", "path": "app.py", "file_text": ""}, "exists"),
        ({"command": "create", "path": "x.py"}, "needs the argument 'file_text'"),
        ({"command": "create", "path": "/work", "file_text": ""}, "no path inside"),
        ({"command": "create", "path": "app.py/x", "file_text": ""}, "cannot be written"),
        ({"command": "str_replace", "path": "app.py", "old_str": "four", "new_str": ""}, "does not occur"),
        ({"command": "str_replace", "path": "app.py", "old_str": "two", "new_str": ""}, r"in lines [2, 4]"),
        ({"command": "str_replace", "path": "app.py", "old_str": "", "new_str": "x"}, "old_str is empty"),
        ({"command": "str_replace", "path": "pkg/data.bin", "old_str": "a"}, "no text file"),
        ({"command": "insert", "path": "app.py", "insert_line": 99, "new_str": "x"}, "from 0 to"),
        ({"command": "insert", "path": "app.py", "insert_line": "x", "new_str": "x"}, "whole number"),
        ({"command": "undo_edit", "path": "app.py"}, "no edit of /work/app.py to undo"),
        ({"command": "delete", "path": "app.py"}, "unknown command"),
    ],
)
async def test_a_mistake_is_an_observation_and_changes_nothing(
    sandbox: Sandbox, arguments: dict[str, object], reason: str
) -> None:
    before = await sandbox.tree_digest()
    said = await call(sandbox, "str_replace_editor", **arguments)
    assert said.startswith("Error: ")
    assert reason in said
    assert await sandbox.tree_digest() == before


async def test_the_same_actions_again_give_the_same_observations_and_tree(factory: BubblewrapFactory) -> None:
    actions = [
        Action("execute_bash", {"command": "mkdir d; cd d; echo $RANDOM > /dev/null; ls -la ../app.py; env | sort"}),
        Action("str_replace_editor", {"command": "view", "path": "."}),
        Action("str_replace_editor", {"command": "create", "path": "d/x", "file_text": "x"}),
        Action("execute_bash", {"command": "pwd; python3 -c 'print(hash(\"a\"))' | tee out"}),
    ]
    seen: list[list[str]] = []
    for _ in range(2):
        sandbox = await factory.create(FILES, SandboxLimits())
        seen.append([(await TOOLS.run(action, sandbox, TASK)).text for action in actions])
        seen[-1].append(await sandbox.tree_digest())
        await sandbox.destroy()
    assert seen[0] == seen[1]


def test_lone_surrogates_do_not_get_through() -> None:
    text = '<tool_call>{"name": "finish", "arguments": {"message": "\\ud800"}}</tool_call>'
    assert TOOLS.parse(text).arguments == {"message": "?"}


async def test_what_the_shell_keeps_outside_the_tree_has_a_digest(factory: BubblewrapFactory) -> None:
    async def after(*commands: str) -> tuple[str, str]:
        made = await factory.create(FILES, SandboxLimits())
        for command in commands:
            await call(made, "execute_bash", command=command)
        digests = await TOOLS.shell_digest(made), await made.tree_digest()
        await made.destroy()
        return digests

    plain, again = await after("true"), await after("true")
    moved, exported = await after("cd pkg"), await after("export A=$RANDOM$RANDOM$RANDOM")
    assert plain == again
    assert plain != await after()
    assert len({plain, moved, exported}) == 3
    assert moved[1] == exported[1] == plain[1], "the work tree alone would not tell"
