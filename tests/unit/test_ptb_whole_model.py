"""Adapters put into their base, and submissions as policies of runs."""

import json
import tomllib
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from cli.main import main
from stepwell.policy.origin import make_version_0
from stepwell.policy.weights import Weights, weights_digest
from stepwell.ptb.evaluation.small_files import Refused
from stepwell.ptb.evaluation.submission import accept
from stepwell.ptb.evaluation.whole_model import UnusableBase, merge_adapter, write_policy
from stepwell.recipe.loading import resolve
from tests.ptb_models import merged, random_tensors, write_adapter, write_model
from tests.ptb_submissions import edit_json, submit, write_json

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A base model that the adapters of `ptb_models` are for."""
    folder = write_model(tmp_path / "base", random_tensors(1))
    write_json(folder / "tokenizer.json", {"of": "the base"})
    write_json(folder / "generation_config.json", {"temperature": 0.5})
    return folder


def test_an_adapter_is_put_into_the_base_by_its_formula(base: Path, tmp_path: Path) -> None:
    adapter = write_adapter(tmp_path / "adapter", 2, 0.1)
    write_json(adapter / "tokenizer.json", {"of": "the adapter"})
    merge_adapter(accept(adapter), base, tmp_path / "merged")
    whole = load_file(tmp_path / "merged" / "model.safetensors")
    wanted = merged(random_tensors(1), adapter)
    assert whole.keys() == wanted.keys()
    for name, tensor in wanted.items():
        torch.testing.assert_close(whole[name], tensor)
    assert "the adapter" in (tmp_path / "merged" / "tokenizer.json").read_text()
    assert accept(tmp_path / "merged").facts.sampling.temperature == 0.5


def test_an_adapter_of_another_model_is_refused(base: Path, tmp_path: Path) -> None:
    adapter = write_adapter(tmp_path / "adapter", 2, 0.1)
    two_layers = {name: tensor for name, tensor in random_tensors(1).items() if "layers.3" not in name}
    other = write_model(tmp_path / "other", two_layers)
    with pytest.raises(Refused, match=r"layers\.3"):
        merge_adapter(accept(adapter), other, tmp_path / "merged")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["adapter", "base", "other"]


def test_a_base_that_cannot_be_read_is_not_the_adapters_fault(tmp_path: Path) -> None:
    adapter = accept(write_adapter(tmp_path / "adapter", 2, 0.1))
    with pytest.raises(UnusableBase, match="cannot be used"):
        merge_adapter(adapter, tmp_path / "nowhere", tmp_path / "merged")
    with pytest.raises(UnusableBase, match="name the folder of its base model"):
        write_policy(tmp_path / "adapter", None, tmp_path / "policy")


def test_a_submission_is_the_policy_of_a_run_by_the_digest_of_its_weights(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = submit(tmp_path / "model")
    (model / "modeling_evil.py").write_text("raise SystemExit")
    edit_json(model / "config.json", auto_map={"AutoModelForCausalLM": "modeling_evil.Evil"})
    policy = tmp_path / "policy"
    assert main(["ptb", "policy", str(model), "--out", str(policy), "--json"]) == 0
    digest = json.loads(capsys.readouterr().out)["weights"]
    assert not (policy / "modeling_evil.py").exists()
    assert "auto_map" not in (policy / "config.json").read_text()
    table = tomllib.loads((ROOT / "recipes" / "smollm2.toml").read_text("utf-8"))
    table["policy"] = {"kind": "folder", "path": str(policy)}
    origin = make_version_0(resolve(table, source="test"), tmp_path / "version-0", tmp_path / "cache")
    assert origin.name == digest == weights_digest(Weights(load_file(model / "model.safetensors")))
    assert main(["ptb", "policy", str(model), "--out", str(policy)]) == 2
    assert "name a new folder" in capsys.readouterr().err
