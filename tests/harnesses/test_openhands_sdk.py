"""OpenHands' SDK, which nobody here wrote, solves a forged task through the gateway."""

import json
from pathlib import Path

import pytest

from stepwell.agent.chat import ChatName
from tests.harnesses.proving_ground import ROOT, call, harness_python, proving_ground, the_edit

SCRIPT = ROOT / "scripts" / "harnesses" / "openhands_sdk.py"


def solution():
    path, old, new = the_edit()
    where = f"/work/{path}"
    return [
        call("Let me look.", "terminal", command="ls -R"),
        call("The file.", "file_editor", command="view", path=where),
        call("", "file_editor", command="str_replace", path=where, old_str=old, new_str=new),
        call("", "think", thought="That was it."),
        call("It is gone.", "finish", message="Done."),
    ]


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("chat", ["chatml", "qwen3_xml"])
async def test_openhands_solves_a_task(chat: ChatName, tmp_path: Path) -> None:
    python = harness_python("openhands")
    if not python.exists():
        pytest.skip(f"there is no {python.relative_to(ROOT)}: scripts/harnesses/install openhands")
    async with proving_ground(tmp_path, solution(), chat) as ground:
        end = await ground.play([str(python), str(SCRIPT)], {"OPENHANDS_SUPPRESS_BANNER": "1"}, timeout_s=800)
        assert end.output.splitlines()[-1:] == ["finished"], end.output
        ground.assert_recorded_is_what_the_engine_said()
        seen = json.loads((ground.folder / "seen.json").read_text())
        assert [(tuple(call["prompt"]), tuple(call["generated"])) for call in seen] == [
            (call.prompt_ids, call.token_ids) for call in ground.session.calls
        ], "OpenHands was shown the same ids"
        assert await ground.score() == 1.0
