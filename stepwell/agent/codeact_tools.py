"""What the policy is told of the CodeAct tools: OpenHands' names and arguments."""

from typing import Any

from stepwell.sandbox.protocol import WORK

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
