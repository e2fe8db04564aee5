"""A worker that is not root makes the same sandboxes: a part of their suite, run by the user `nobody`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stepwell.sandbox.folders import temporary_folder
from tests.stack.another_user import as_nobody, give_to_nobody

ROOT = Path(__file__).resolve().parents[2]
OF_BOTH_KINDS = (
    "test_sandbox.py::test_a_command_gets_its_input_and_gives_its_output_and_status",
    "test_sandbox.py::test_a_fork_bomb_is_stopped_and_the_sandbox_lives",
    "test_sandbox_files.py::test_host_folders_cannot_be_seen",
    "test_sandbox_files.py::test_only_our_process_is_there_and_killing_all_hurts_nobody_outside",
    "test_sandbox_files.py::test_a_command_has_no_privileges_and_cannot_make_namespaces",
    "test_sandbox_files.py::test_the_process_inside_cannot_be_opened_by_commands",
    "test_sandbox_files.py::test_changed_files_are_those_that_differ",
    "test_sandbox_files.py::test_hostile_trees_are_listed_and_removed",
)
OF_ONE = (
    "test_sandbox_life.py::test_a_killed_worker_leaves_no_process_and_no_mount_and_the_sweep_its_folders",
    "test_apptainer.py::test_a_kill_leaves_no_process_and_no_mount_and_the_sweep_its_folders[worker]",
    "test_apptainer.py::test_changes_are_told_from_what_the_image_and_the_files_had",
)


@pytest.mark.skipif(os.geteuid() != 0, reason="all of the suite is run by another user than root")
def test_a_worker_that_is_not_root_makes_the_same_sandboxes(apptainer_program: Path) -> None:
    with temporary_folder("stepwell-test-") as folder:
        folder.chmod(0o755)
        own = folder / "own"
        own.mkdir()
        give_to_nobody(own)
        tests = [f"tests/stack/{name}" for name in (*OF_BOTH_KINDS, *OF_ONE)]
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            f"--basetemp={own / 'tests'}",
            *tests,
        ]
        environment = {"PATH": os.environ["PATH"], "HOME": str(own), "TMPDIR": str(own), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            as_nobody(command, shown=[Path(sys.base_prefix), Path(sys.prefix), ROOT]),
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " skipped" not in done.stdout, done.stdout
