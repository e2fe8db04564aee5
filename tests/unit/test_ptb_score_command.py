"""`stepwell ptb score`: requests that are wrong are refused before anything is evaluated."""

from pathlib import Path

import pytest
import tomli_w

from cli.main import main
from cli.ptb_run_version import model_folder
from tests.ptb_results import configuration
from tests.ptb_submissions import BASE_MODEL, gsm8k_files

REGIME = f"""
name = "by hand"
since = "2026-11"
rules = "v1.1"
base_models = ["{BASE_MODEL}"]
hours = 1.0
seeds = [1]
judge_seeds = 1
judge = "none"
judge_effort = "none"
checks = []
votes = 1
max_tokens = {{ gsm8k = [12], healthbench = [12] }}
weights = {{ gsm8k = 0.5, healthbench = 0.5 }}
"""


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """A request that is right but for the files of HealthBench."""
    regime, listed = tmp_path / "regime.toml", tmp_path / "files.toml"
    regime.write_text(REGIME)
    add = [part for name, path in gsm8k_files(tmp_path).items() for part in ("--add", f"gsm8k.{name}={path}")]
    assert main(["ptb", "files", str(listed), *add, "--rows", "gsm8k=2"]) == 0
    options = {"base-model": BASE_MODEL, "benchmark": "gsm8k", "role": "base", "regime": regime, "files": listed}
    flags = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    return ["ptb", "score", str(tmp_path / "model"), *flags, "--out", str(tmp_path / "results.jsonl")]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ((), "lacks healthbench, which by hand has"),
        (("--benchmark", "bfcl"), "by hand has no benchmark 'bfcl'"),
        (("--base-model", "lab/other"), "'lab/other' is no base model of by hand"),
        (("--role", "agent"), "--configuration is of an agent's trial"),
        (("--configuration", "agent.toml"), "--configuration is of an agent's trial"),
        (("--benchmark", "healthbench"), "healthbench is scored by a judge: give --judge URL, or --judgements FILE"),
        (("--judge", "http://x/v1", "--judgements", "y"), "give one of them"),
        (("--judge-key", "NO_SUCH_VARIABLE"), "NO_SUCH_VARIABLE, which is not set"),
        (("--regime", "v9"), "v9 cannot be read"),
        (("--files", "nowhere.toml"), "nowhere.toml cannot be read"),
    ],
)
def test_a_wrong_request_is_refused_with_the_reason(
    command: list[str], more: tuple[str, ...], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main([*command, *more]) == 2
    assert reason in capsys.readouterr().err


def test_a_configuration_that_is_none_is_refused(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = tmp_path / "agent.toml"
    said.write_text(tomli_w.dumps(configuration().model_dump(exclude_none=True, exclude={"hours"})))
    capsys.readouterr()
    assert main([*command, "--role", "agent", "--configuration", str(said)]) == 2
    assert "agent.toml is no agent's configuration: hours: Field required" in capsys.readouterr().err


def test_a_folder_is_itself_whatever_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("micro@1").mkdir()
    assert model_folder("micro@1", tmp_path) == Path("micro@1")
    assert model_folder("./lab/model", tmp_path) == Path("lab/model")
