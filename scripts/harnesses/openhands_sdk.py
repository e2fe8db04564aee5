"""Play a rollout by OpenHands' SDK: its agent, conversation and tools, whose actions are carried out in our sandbox.

    .venv-harnesses/openhands/bin/python scripts/harnesses/openhands_sdk.py < issue

STEPWELL_GATEWAY (http://host:port) and STEPWELL_TOKEN say which rollout. The conversation is a local one, which looks
at an empty folder of its own; the executors of `terminal` and `file_editor` are ours. The last line of output is how
the agent ended; `seen.json` in the current folder has the token ids that OpenHands was shown.
"""

import json
import os
import sys
import tempfile
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from openhands.sdk import LLM, Agent, Conversation, Event, Tool
from openhands.sdk.conversation.state import ConversationState
from openhands.sdk.event.token import TokenEvent
from openhands.sdk.tool import ToolExecutor, register_tool
from openhands.tools.file_editor import FileEditorAction, FileEditorObservation, FileEditorTool
from openhands.tools.terminal import TerminalAction, TerminalObservation, TerminalTool
from openhands.tools.terminal.metadata import CmdOutputMetadata
from pydantic import SecretStr

GATEWAY = os.environ["STEPWELL_GATEWAY"]
TOKEN = os.environ["STEPWELL_TOKEN"]


def call_tool(name: str, arguments: dict[str, Any]) -> str:
    """Has one of Stepwell's tools carried out in the sandbox; gives the observation."""
    request = urllib.request.Request(
        f"{GATEWAY}/v1/sandbox/tool",
        json.dumps({"name": name, "arguments": arguments}).encode(),
        {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=600) as response:
        return json.load(response)["observation"]


class SandboxTerminal(ToolExecutor[TerminalAction, TerminalObservation]):
    """Commands, in the shell of the sandbox."""

    def __call__(self, action: TerminalAction, conversation: Any = None) -> TerminalObservation:
        """Runs one command."""
        given = {"command": action.command, "is_input": str(action.is_input).lower()}
        if action.timeout:
            given["timeout"] = action.timeout
        said = call_tool("execute_bash", given)
        # The end of the command is part of what was said; -1 keeps OpenHands from saying it again.
        return TerminalObservation.from_text(
            said, command=action.command, metadata=CmdOutputMetadata(), is_error=said.startswith("Error: ")
        )


class SandboxEditor(ToolExecutor[FileEditorAction, FileEditorObservation]):
    """Edits, in the work tree of the sandbox."""

    def __call__(self, action: FileEditorAction, conversation: Any = None) -> FileEditorObservation:
        """Carries out one edit."""
        given = action.model_dump(exclude_none=True, exclude={"kind"})
        said = call_tool("str_replace_editor", given)
        return FileEditorObservation.from_text(
            said, command=action.command, path=action.path, is_error=said.startswith("Error: ")
        )


class OurTerminal(TerminalTool):
    """OpenHands' `terminal` with our executor."""

    name = "terminal"

    @classmethod
    def create(cls, conv_state: ConversationState) -> Sequence[TerminalTool]:
        """See ToolDefinition."""
        return TerminalTool.create(conv_state, executor=SandboxTerminal())


class OurEditor(FileEditorTool):
    """OpenHands' `file_editor` with our executor."""

    name = "file_editor"

    @classmethod
    def create(cls, conv_state: ConversationState) -> Sequence[FileEditorTool]:
        """See ToolDefinition."""
        folder = conv_state.workspace.working_dir
        return [
            tool.set_executor(SandboxEditor()).model_copy(
                update={"description": tool.description.replace(folder, "/work")}
            )
            for tool in FileEditorTool.create(conv_state)
        ]


def main() -> int:
    register_tool("terminal", OurTerminal)
    register_tool("file_editor", OurEditor)
    llm = LLM(
        model="openai/policy",
        base_url=f"{GATEWAY}/v1",
        api_key=SecretStr(TOKEN),
        native_tool_calling=True,
        num_retries=2,
        litellm_extra_body={"return_token_ids": True},
    )
    agent = Agent(llm=llm, tools=[Tool(name="terminal"), Tool(name="file_editor")])
    seen: list[dict[str, list[int]]] = []

    def look(event: Event) -> None:
        if isinstance(event, TokenEvent):
            seen.append({"prompt": event.prompt_token_ids, "generated": event.response_token_ids})

    with tempfile.TemporaryDirectory() as folder:
        conversation = Conversation(
            agent=agent, workspace=folder, callbacks=[look], visualizer=None, max_iteration_per_run=30
        )
        conversation.send_message(f"The repository is in /work, not in your folder. {sys.stdin.read()}")
        conversation.run()
        ended = conversation.state.execution_status.value
        conversation.close()
    Path("seen.json").write_text(json.dumps(seen))
    print(ended)
    return 0


if __name__ == "__main__":
    sys.exit(main())
