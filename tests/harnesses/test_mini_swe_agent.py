"""mini-swe-agent, which nobody here wrote, solves a forged task through the gateway."""

from pathlib import Path

import pytest

from tests.harnesses.proving_ground import ROOT, call, harness_python, proving_ground, the_edit

SCRIPT = ROOT / "scripts" / "harnesses" / "mini_swe_agent.py"


def solution():
    path, old, new = the_edit()
    edit = f"import pathlib; p = pathlib.Path({path!r}); p.write_text(p.read_text().replace({old!r}, {new!r}))"
    return [
        call("Let me look.", "bash", command=f"cat {path}"),
        call("I see.", "bash", command=f"python3 - <<'EOF'\n{edit}\nEOF\ncat {path}"),
        call("It is gone.", "bash", command="echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"),
    ]


@pytest.mark.parametrize(
    ("environment", "arguments"),
    [
        pytest.param("mini-swe-agent-light", ["--light"], id="its plain client"),
        pytest.param("mini-swe-agent", [], id="litellm", marks=pytest.mark.long),
    ],
)
async def test_mini_swe_agent_solves_a_task(environment: str, arguments: list[str], tmp_path: Path) -> None:
    python = harness_python(environment)
    if not python.exists():
        pytest.skip(f"there is no {python.relative_to(ROOT)}: scripts/harnesses/install {environment}")
    async with proving_ground(tmp_path, solution()) as ground:
        settings = {"MSWEA_GLOBAL_CONFIG_DIR": str(ground.folder), "MSWEA_SILENT_STARTUP": "1"}
        end = await ground.play([str(python), str(SCRIPT), *arguments], settings, timeout_s=240)
        assert end.output.splitlines()[-1:] == ["Submitted"], end.output
        ground.assert_recorded_is_what_the_engine_said()
        assert await ground.score() == 1.0
