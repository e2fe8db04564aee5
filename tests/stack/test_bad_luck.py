"""Bad input and bad luck at the command line: one message with what to do, the right exit code, nothing left behind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stack.steering import stepwell
from tests.stack.tiny_run import RECIPE
from workers.services.addresses import Addresses

ROOT = Path(__file__).parents[2]


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(RECIPE)
    return path


def one_line(answer: "subprocess.CompletedProcess[str]") -> str:
    """The message, which stands alone."""
    lines = answer.stderr.strip().splitlines()
    assert lines, answer.stdout
    assert "Traceback" not in answer.stderr
    return lines[0] if len(lines) == 1 else answer.stderr


def test_wrong_key_is_refused_before_anything_starts(recipe: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    answer = stepwell(home, "run", str(recipe), "--set", "run.max_step=3")
    assert answer.returncode == 2
    assert "did you mean 'max_steps'?" in answer.stderr
    assert not home.exists()


def test_model_folder_without_weights_is_refused(recipe: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    (model / "tokenizer.json").write_text("{}")
    answer = stepwell(
        tmp_path / "home",
        "run",
        str(recipe),
        *("--set", "policy.kind=folder", "--set", f"policy.path={json.dumps(str(model))}"),
        *("--set", "agent.tools=codeact"),
    )
    assert answer.returncode == 2
    assert "no *.safetensors" in one_line(answer)


def test_name_of_a_run_with_another_recipe_is_refused(
    services: Addresses, services_home: Path, recipe: Path, tmp_path: Path
) -> None:
    first = stepwell(services_home, "run", str(recipe), "--name", "taken", "--set", "run.max_steps=1")
    assert first.returncode == 0, first.stderr
    second = stepwell(services_home, "run", str(recipe), "--name", "taken", "--set", "run.seed=9")
    assert second.returncode == 2
    assert "exists with another recipe" in one_line(second)


def test_finished_run_of_that_name_is_shown_and_not_run_again(
    services: Addresses, services_home: Path, recipe: Path
) -> None:
    arguments = ("run", str(recipe), "--name", "done", "--set", "run.max_steps=1")
    assert stepwell(services_home, *arguments).returncode == 0
    again = stepwell(services_home, *arguments)
    assert again.returncode == 0, again.stderr
    assert "did its last step at weight version 1" in again.stdout


def test_without_user_namespaces_the_run_says_what_to_do(recipe: Path, tmp_path: Path) -> None:
    no_namespaces = (
        "import ctypes, os, sys\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "assert libc.unshare(0x10000000) == 0\n"  # a user namespace of our own, in which no further one may be made
        "open('/proc/sys/user/max_user_namespaces', 'w').write('0')\n"
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", no_namespaces, "-m", "cli.main", "run", str(recipe)],
        cwd=ROOT,
        env={**os.environ, "STEPWELL_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 1
    assert "namespace" in one_line(answer)
    assert not (tmp_path / "home").exists()
