"""The CodeAct tool set: execute_bash, str_replace_editor, think and finish."""

import hashlib
import json
from typing import Literal, get_args

from stepwell.agent.codeact_editor import Edits, edit
from stepwell.agent.codeact_tools import ALLOWED, REQUIRED, TOOLS, FunctionName, described, shown
from stepwell.agent.protocol import NO_CALL, Action, Observation
from stepwell.agent.tool_calls import JSON_CALLS, CallFormat, MalformedCall
from stepwell.sandbox.protocol import WORK, ExecEnd, Sandbox
from stepwell.tasks.task import Task

_SHELL = """
state=/tmp/.shell
[ -f $state/environment ] && . $state/environment
[ -f $state/folder ] && cd "$(cat $state/folder)"
trap 'mkdir -p /tmp/.shell; { export -p; declare -f; } > /tmp/.shell/environment; pwd > /tmp/.shell/folder' EXIT
eval "$1"
"""
"""Runs `$1` where the command before it left off. All processes of a command end with it, so its folder, exported
variables and functions are kept in files outside the work tree."""

_SHELL_FILES = ("/tmp/.shell/folder", "/tmp/.shell/environment")


class CodeActTools:
    """OpenHands' tools; a `ToolSet`, for one episode: it remembers the edits that can be undone. Two runs of the same
    actions on the same tree do the same, as far as the commands themselves do.

    Args:
        calls: Form of the calls.
        command_timeout_s: Longest that one command may run; a call may ask for less.
        observation_chars: Most characters of an observation: head and tail, with the number left out between.
        functions: Those that are offered; a call of another one is a mistake.
        prompt: How the policy is told of them: by their schemas, or by example calls.
        work: Root of the work tree, an absolute path.
    """

    name = "codeact"

    def __init__(
        self,
        calls: CallFormat = JSON_CALLS,
        *,
        command_timeout_s: float = 60.0,
        observation_chars: int = 8000,
        functions: tuple[FunctionName, ...] = get_args(FunctionName),
        prompt: Literal["schemas", "examples"] = "schemas",
        work: str = WORK,
    ) -> None:
        self._calls = calls
        self._functions = functions
        self._prompt = prompt
        self._work = work
        self._edits = Edits()
        self._command_timeout_s = command_timeout_s
        self._observation_chars = observation_chars

    def system_prompt(self) -> str:
        """Role, tools and call format."""
        return (described if self._prompt == "schemas" else shown)(self._calls, self._functions, self._work)

    def parse(self, text: str) -> Action:
        """The first call in the text. Arguments that are no strings become their JSON text."""
        try:
            calls = self._calls.parse(text, TOOLS).calls
        except MalformedCall as error:
            return _invalid(str(error))
        if not calls:
            return _invalid(NO_CALL)
        tool = calls[0].name
        if tool not in self._functions:
            return _invalid(f"there is no function {tool!r}; there are {', '.join(self._functions)}")
        given = {key: _text(value) for key, value in calls[0].arguments.items()}
        if unknown := sorted(given.keys() - ALLOWED[tool]):
            return _invalid(f"{tool} has no argument {unknown[0]!r}; it has {', '.join(sorted(ALLOWED[tool]))}")
        if missing := [key for key in REQUIRED[tool] if key not in given]:
            return _invalid(f"{tool} needs the argument {missing[0]!r}")
        return Action(tool, given)

    async def run(self, action: Action, sandbox: Sandbox, task: Task) -> Observation:
        """Carries the action out.

        Raises:
            SandboxError: the sandbox failed.
        """
        match action.tool:
            case "finish":
                return Observation("", finished=True)
            case "think":
                return Observation("Your thought has been noted.")
            case "execute_bash":
                return Observation(self._clip(await self._bash(action.arguments, sandbox)))
            case "str_replace_editor":
                return Observation(self._clip(await edit(action.arguments, sandbox, self._edits, self._work)))
            case _:
                return Observation(self._clip("Error: " + action.arguments.get("reason", "no such function")))

    async def shell_digest(self, sandbox: Sandbox) -> str:
        """SHA-256 over the shell's folder, exported variables and functions, as the last command left them."""
        kept = await sandbox.exec(["cat", *_SHELL_FILES], timeout_s=self._command_timeout_s)
        return hashlib.sha256(kept.output).hexdigest()

    async def _bash(self, arguments: dict[str, str], sandbox: Sandbox) -> str:
        if arguments.get("is_input", "false").lower() == "true":
            return "Error: no command is waiting for input; every command has ended."
        command = arguments["command"]
        if "\0" in command:
            return "Error: a command cannot hold a NUL character."
        try:
            timeout_s = min(float(arguments.get("timeout", self._command_timeout_s)), self._command_timeout_s)
        except ValueError:
            return f"Error: timeout must be a number of seconds, not {arguments['timeout']!r}."
        if not timeout_s > 0:
            return "Error: timeout must be above 0."
        result = await sandbox.exec(["bash", "-c", _SHELL, "bash", command], timeout_s=timeout_s)
        output = result.output.decode(errors="replace")
        ending = {
            ExecEnd.EXITED: f"[Command finished with exit code {result.returncode}]",
            ExecEnd.TIMEOUT: f"[Command was stopped after {timeout_s:g} s]",
            ExecEnd.OUTPUT_LIMIT: "[Command was stopped for endless output]",
        }[result.end]
        return output + ("" if not output or output.endswith("\n") else "\n") + ending

    def _clip(self, text: str) -> str:
        limit = self._observation_chars
        if len(text) <= limit:
            return text
        head = limit // 2
        tail = limit - head
        return f"{text[:head]}\n[... {len(text) - limit} characters left out ...]\n{text[-tail:]}"


def _invalid(reason: str) -> Action:
    return Action("invalid", {"reason": reason})


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
