"""How a harness outside reaches its rollout's sandbox, and no other."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from stepwell.agent.codeact import CodeActTools
from stepwell.agent.gateway.refusals import Refused
from stepwell.agent.gateway.sandbox_door import SandboxDoor
from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.sandbox.protocol import SandboxLimits
from stepwell.tasks.forge import forged_task

TASK = forged_task(0, "train", 0)


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[SandboxDoor]:
    factory = BubblewrapFactory(tmp_path)
    sandbox = await factory.create({"a.py": b"x = 1\n"}, SandboxLimits())
    yield SandboxDoor(sandbox, CodeActTools(), TASK, command_timeout_s=2.0)
    await factory.close()


async def test_commands_run_in_the_tree_and_keep_nothing_between_them(door: SandboxDoor) -> None:
    said = await door.exec(b'{"command": "cat a.py; cd /; export A=1; exit 3"}')
    assert said == {"returncode": 3, "output": "x = 1\n", "end": "exited"}
    assert (await door.exec(b'{"command": "pwd; echo $A"}'))["output"] == "/work\n\n"


async def test_a_command_has_no_more_time_than_the_recipe_gives(door: SandboxDoor) -> None:
    assert (await door.exec(b'{"command": "sleep 60", "timeout_s": 600}'))["end"] == "timeout"


async def test_tools_are_those_of_our_own_harness(door: SandboxDoor) -> None:
    arguments = {"command": "str_replace", "path": "a.py", "old_str": "1", "new_str": "2"}
    edit = json.dumps({"name": "str_replace_editor", "arguments": arguments}).encode()
    assert "x = 2" in (await door.tool(edit))["observation"]
    assert await door.sandbox.changed_files() == {"a.py": b"x = 2\n"}
    assert "no function 'rm'" in (await door.tool(b'{"name": "rm"}'))["observation"]
    finished = await door.tool(b'{"name": "finish", "arguments": {"message": ""}}')
    assert finished == {"observation": "", "finished": True}


@pytest.mark.parametrize("body", [b"{", b"{}", b'{"command": "a\\u0000"}', b'{"command": "ls", "timeout_s": 0}'])
async def test_what_is_no_request_is_refused(door: SandboxDoor, body: bytes) -> None:
    with pytest.raises(Refused) as refused:
        await door.exec(body)
    assert refused.value.status == 400


async def test_a_sandbox_that_is_gone_is_infrastructures_failure(door: SandboxDoor) -> None:
    await door.sandbox.destroy()
    with pytest.raises(Refused) as refused:
        await door.exec(b'{"command": "ls"}')
    assert refused.value.status == 503
