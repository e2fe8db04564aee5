"""What the policy is told of the CodeAct tools: OpenHands' names and arguments."""

from typing import Any, Literal

from stepwell.agent.tool_calls import CallFormat, Parsed, ToolCall
from stepwell.sandbox.protocol import WORK

FunctionName = Literal["execute_bash", "str_replace_editor", "think", "finish"]

_INTRODUCTION = """\
You are a software engineer. The repository in {work} has the problem that the user describes. Find the cause, change \
the source so that it is gone, check your change, and call finish. Do not change tests. Call one function a turn."""


def _tool(name: str, description: str, required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def introduction(work: str) -> str:
    """Role and task of who works in the folder `work`."""
    return _INTRODUCTION.format(work=work)


def tools_in(work: str) -> tuple[dict[str, Any], ...]:
    """The tools, as they are told to who works in the folder `work`."""
    return (
        _tool(
            "execute_bash",
            "Run a bash command. Folder and environment carry over to the next command; background processes do not.",
            ["command"],
            command={"type": "string", "description": "The command."},
            is_input={"type": "string", "enum": ["true", "false"], "description": "Must be false: no command waits."},
            timeout={"type": "number", "description": "Seconds after which the command is stopped."},
        ),
        _tool(
            "str_replace_editor",
            "View, create and edit text files. old_str must occur exactly once in the file, with its white space. "
            "undo_edit takes the last edit of the file back.",
            ["command", "path"],
            command={"type": "string", "enum": ["view", "create", "str_replace", "insert", "undo_edit"]},
            path={"type": "string", "description": f"Absolute path, for example {work}/file.py."},
            file_text={"type": "string", "description": "Content for create."},
            old_str={"type": "string", "description": "Text that str_replace replaces."},
            new_str={"type": "string", "description": "New text for str_replace and insert."},
            insert_line={"type": "integer", "description": "Line after which insert puts new_str; 0 is the beginning."},
            view_range={"type": "array", "items": {"type": "integer"}, "description": "First and last line to view."},
        ),
        _tool("think", "Note a thought. Changes nothing.", ["thought"], thought={"type": "string"}),
        _tool("finish", "Say that the work is done.", ["message"], message={"type": "string"}),
    )


TOOLS = tools_in(WORK)
REQUIRED = {tool["function"]["name"]: tuple(tool["function"]["parameters"]["required"]) for tool in TOOLS}
ALLOWED = {tool["function"]["name"]: frozenset(tool["function"]["parameters"]["properties"]) for tool in TOOLS}
_BRIEF = """\
The repository in {work} has the problem that the user describes. Repair its source, then finish. Answer with one \
call, like these:"""


def examples_in(work: str) -> dict[str, tuple[dict[str, Any], ...]]:
    """Calls that show how each function is called."""
    return {
        "execute_bash": ({"command": "grep -n word *.py"},),
        "str_replace_editor": (
            {"command": "view", "path": f"{work}/a.py", "view_range": [1, 9]},
            {"command": "str_replace", "path": f"{work}/a.py", "old_str": "a - b", "new_str": "a + b"},
        ),
        "think": ({"thought": "The sum is wrong."},),
        "finish": ({"message": "Repaired."},),
    }


def described(calls: CallFormat, functions: tuple[FunctionName, ...], work: str = WORK) -> str:
    """System text with the schemas of functions, as models that were trained on tools know it."""
    return calls.describe(
        [tool for tool in tools_in(work) if tool["function"]["name"] in functions], introduction(work)
    )


def shown(calls: CallFormat, functions: tuple[FunctionName, ...], work: str = WORK) -> str:
    """System text with example calls of functions instead of their schemas."""
    examples = [
        ToolCall(name, arguments)
        for name, of_name in examples_in(work).items()
        if name in functions
        for arguments in of_name
    ]
    return calls.write(Parsed(_BRIEF.format(work=work), tuple(examples)))
