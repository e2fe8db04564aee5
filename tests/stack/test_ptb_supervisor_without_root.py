"""A worker that is not root holds agents as well: a part of the suite, run by the user `nobody`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stepwell.sandbox.folders import temporary_folder
from tests.stack.another_user import as_nobody, give_to_nobody

ROOT = Path(__file__).resolve().parents[2]
TESTS = (
    "test_ptb_supervisor.py::test_what_does_not_end_when_it_is_asked_is_killed_with_all_that_it_started",
    "test_ptb_supervisor.py::test_an_agent_can_neither_end_nor_read_the_first_process",
    "test_ptb_supervisor_lease.py::test_an_agent_whose_lease_lapsed_stands_still_with_its_clock_and_goes_on_when_it_is_renewed",
    "test_ptb_supervisor_lease.py::test_everything_inside_dies_with_the_supervisor_and_that_is_told_from_an_end[working]",
    "test_ptb_agent_network.py::test_there_is_no_way_round_the_proxy[allow]",
)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.skipif(os.geteuid() != 0, reason="all of the suite is run by another user than root")
def test_a_worker_that_is_not_root_holds_agents_as_well() -> None:
    with temporary_folder("stepwell-test-") as folder:
        folder.chmod(0o755)
        own = folder / "own"
        own.mkdir()
        give_to_nobody(own)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={own / 'tests'}"]
        environment = {"PATH": os.environ["PATH"], "HOME": str(own), "TMPDIR": str(own), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            as_nobody(
                [*command, *(f"tests/stack/{test}" for test in TESTS)],
                shown=[Path(sys.base_prefix), Path(sys.prefix), ROOT],
            ),
            cwd=ROOT,
            env=environment | ({"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " skipped" not in done.stdout, done.stdout
