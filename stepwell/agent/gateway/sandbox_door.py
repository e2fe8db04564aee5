"""How a harness that runs outside reaches its rollout's sandbox: commands and tools over HTTP, under the same token.

POST /v1/sandbox/exec   {"command": …, "timeout_s": …}      → {"returncode": …, "output": …, "end": …}
POST /v1/sandbox/tool   {"name": …, "arguments": {…}}       → {"observation": …, "finished": …}
"""

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from stepwell.agent.gateway.refusals import Refused, bad_request, unavailable
from stepwell.agent.protocol import ToolSet
from stepwell.agent.tool_calls import JSON_CALLS, Parsed, ToolCall
from stepwell.sandbox.protocol import Sandbox, SandboxError
from stepwell.tasks.task import Task

T = TypeVar("T", bound=BaseModel)


class _Exec(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    command: str
    timeout_s: float = Field(default=60.0, gt=0, allow_inf_nan=False)


class _Tool(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    arguments: dict[str, Any] = {}


class SandboxDoor:
    """One rollout's sandbox.

    Args:
        sandbox: Where commands run.
        tools: What `tool` offers; must read calls in JSON.
        task: Of the rollout.
        command_timeout_s: Longest that a command may run, whatever is asked for.
    """

    def __init__(self, sandbox: Sandbox, tools: ToolSet, task: Task, *, command_timeout_s: float = 60.0) -> None:
        self.sandbox = sandbox
        self._tools = tools
        self._task = task
        self._command_timeout_s = command_timeout_s

    async def exec(self, body: bytes) -> dict[str, Any]:
        """Runs a command in a shell of its own, in the root of the work tree.

        Raises:
            Refused: the request is malformed, or the sandbox failed.
        """
        asked = _read(_Exec, body)
        if "\0" in asked.command:
            raise bad_request("a command cannot hold a NUL character")
        try:
            result = await self.sandbox.exec(
                ["bash", "-c", asked.command], timeout_s=min(asked.timeout_s, self._command_timeout_s)
            )
        except SandboxError as error:
            raise _failed(error) from error
        output = result.output.decode(errors="replace")
        return {"returncode": result.returncode, "output": output, "end": result.end.value}

    async def tool(self, body: bytes) -> dict[str, Any]:
        """Calls one of our own harness's tools; a mistake in the call is an observation.

        Raises:
            Refused: the request is malformed, or the sandbox failed.
        """
        asked = _read(_Tool, body)
        text = JSON_CALLS.write(Parsed("", (ToolCall(asked.name, asked.arguments),)))
        try:
            observation = await self._tools.run(self._tools.parse(text), self.sandbox, self._task)
        except SandboxError as error:
            raise _failed(error) from error
        return {"observation": observation.text, "finished": observation.finished}


def _read(model: type[T], body: bytes) -> T:
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise bad_request(str(error)) from error


def _failed(error: SandboxError) -> Refused:
    return unavailable(f"the sandbox failed: {error}")
