"""What of a submitted folder is read, and what becomes of hostile ones."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from stepwell.ptb.evaluation.small_files import Refused
from stepwell.ptb.evaluation.submission import accept, config_bytes
from tests.ptb_models import in_eight_bits, random_tensors, write_adapter, write_model
from tests.ptb_submissions import edit_json, submit, write_json


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return submit(tmp_path / "model")


def test_a_model_is_read_by_name_and_known_by_the_digests_of_what_is_read(model: Path) -> None:
    before = accept(model)
    assert set(before.facts.files) == {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json"}
    (model / "README.md").write_text("# The best model")
    assert accept(model).facts == before.facts
    edit_json(model / "config.json", rms_norm_eps=1e-5)
    assert accept(model).facts.digest != before.facts.digest


def test_settings_of_generation_are_followed_within_bounds_and_the_rest_is_named(model: Path) -> None:
    write_json(
        model / "generation_config.json",
        {"temperature": 0.6, "top_p": 0.95, "top_k": 20, "repetition_penalty": 1.1, "max_new_tokens": 10**9},
    )
    sampling = accept(model).facts.sampling
    assert (sampling.temperature, sampling.top_p, sampling.greedy) == (0.6, 0.95, False)
    assert sampling.unused == ("max_new_tokens", "repetition_penalty", "top_k")


@pytest.mark.parametrize("settings", [{"do_sample": False, "temperature": 0.6}, {"temperature": 0.0}, {"top_p": 0}])
def test_a_model_may_ask_for_its_most_probable_tokens(model: Path, settings: dict[str, object]) -> None:
    write_json(model / "generation_config.json", settings)
    assert accept(model).facts.sampling.greedy


def test_a_model_without_settings_is_sampled_as_it_is(model: Path) -> None:
    (model / "generation_config.json").unlink()
    sampling = accept(model).facts.sampling
    assert (sampling.temperature, sampling.top_p, sampling.greedy) == (1.0, 1.0, False)


def test_ends_of_answers_are_taken_from_all_three_files(model: Path) -> None:
    edit_json(model / "config.json", eos_token_id=3)
    edit_json(model / "generation_config.json", eos_token_id=[4, 5])
    write_json(model / "tokenizer_config.json", {"eos_token": {"content": "<|end|>", "special": True}})
    found = accept(model)
    assert (found.stops.ids, found.stops.texts) == ((3, 4, 5), ("<|end|>",))
    assert found.facts.stop == ("<|end|>", "token 3", "token 4", "token 5")


def test_programs_pickles_and_templates_are_passed_over_and_named(model: Path) -> None:
    passed_over = ("modeling_evil.py", "pytorch_model.bin", "chat_template.jinja", "extra.safetensors")
    for name in passed_over:
        (model / name).write_bytes(b"whatever")
    write_json(model / "tokenizer_config.json", {"chat_template": "{{ 'the answer is 7' }}"})
    edit_json(
        model / "config.json", auto_map={"AutoModelForCausalLM": "modeling_evil.Evil"}, _attn_implementation="x/y"
    )
    found = accept(model)
    assert set(found.facts.ignored) == {
        "modeling_evil.py",
        "pytorch_model.bin",
        "chat_template.jinja",
        "extra.safetensors",
    }
    assert len(found.facts.notes) == 2
    assert not found.files.keys() & found.facts.ignored.keys()
    assert json.loads(config_bytes(found)).keys().isdisjoint({"auto_map", "_attn"})


def _only_a_pickle(model: Path) -> None:
    (model / "model.safetensors").rename(model / "pytorch_model.bin")


def _link_out(model: Path) -> None:
    outside = model.parent / "secret"
    outside.write_text("{}")
    (model / "tokenizer_config.json").symlink_to(outside)


def _link_to_a_folder_above(model: Path) -> None:
    (model / "shards").symlink_to("..", target_is_directory=True)


def _in_eight_bits(model: Path) -> None:
    save_file(in_eight_bits(load_file(model / "model.safetensors")), model / "model.safetensors")


def _cut_off(model: Path) -> None:
    os.truncate(model / "model.safetensors", 1000)


def _index_out(model: Path) -> None:
    (model / "model.safetensors").rename(model.parent / "elsewhere.safetensors")
    write_json(model / "model.safetensors.index.json", {"weight_map": {"a": "../elsewhere.safetensors"}})


HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "only a pickle": (_only_a_pickle, "pytorch_model.bin may hold a pickle, which is never loaded"),
    "a link out": (_link_out, "tokenizer_config.json is a link out of the submitted folder"),
    "a link to the folder above": (_link_to_a_folder_above, "shards is a link out of the submitted folder"),
    "eight bits": (_in_eight_bits, "has the type I8: wanted one of F64, F32, F16, BF16"),
    "weights cut off": (_cut_off, "is no safetensors file"),
    "an index that leads out": (_index_out, "'../elsewhere.safetensors', which is no safetensors file of the folder"),
    "no tokenizer": (lambda model: (model / "tokenizer.json").unlink(), "there is no tokenizer.json"),
    "no configuration": (lambda model: (model / "config.json").unlink(), "there is no config.json"),
    "quantised": (
        lambda model: edit_json(model / "config.json", quantization_config={"quant_method": "gptq"}),
        "has a quantization_config",
    ),
    "a configuration of huge size": (
        lambda model: (model / "generation_config.json").write_text(" " * (5 << 20) + "{}"),
        "generation_config.json has 5242882 bytes, at most 4194304 are read",
    ),
    "a configuration that is deep": (
        lambda model: (model / "generation_config.json").write_text("[" * 200_000),
        "generation_config.json is no JSON",
    ),
    "a temperature that is none": (
        lambda model: write_json(model / "generation_config.json", {"temperature": float("nan")}),
        "temperature = nan: wanted a number",
    ),
    "a temperature out of range": (
        lambda model: write_json(model / "generation_config.json", {"temperature": -1}),
        "temperature = -1: wanted 0 to 100",
    ),
    "an end that is no token": (
        lambda model: edit_json(model / "config.json", eos_token_id="all"),
        "'all' as eos_token_id: wanted the number of a token",
    ),
    "a thousand ends": (
        lambda model: edit_json(model / "config.json", eos_token_id=list(range(1000))),
        "1000 tokens are named as eos_token_id",
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_cannot_be_evaluated_is_refused_with_the_reason(model: Path, kind: str) -> None:
    spoil, reason = HOSTILE[kind]
    spoil(model)
    with pytest.raises(Refused) as refused:
        accept(model)
    assert reason in str(refused.value)


def test_a_link_inside_the_folder_is_followed_and_a_base_may_be_made_of_links(model: Path, tmp_path: Path) -> None:
    (model / "model.safetensors").rename(model / "weights")
    (model / "model.safetensors").symlink_to("weights")
    inside = accept(model)
    cache = tmp_path / "cache"
    cache.mkdir()
    for name in inside.facts.files:
        (cache / name).symlink_to(model / name)
    assert accept(cache, "anywhere").facts.files == inside.facts.files
    with pytest.raises(Refused, match="link out"):
        accept(cache)


def test_shards_are_those_of_the_index(model: Path) -> None:
    tensors = load_file(model / "model.safetensors")
    (model / "model.safetensors").unlink()
    names = {name: f"part-{number % 2}.safetensors" for number, name in enumerate(sorted(tensors))}
    for part in set(names.values()):
        save_file({name: tensors[name] for name in names if names[name] == part}, model / part)
    save_file({"other": torch.zeros(2)}, model / "other.safetensors")
    write_json(model / "model.safetensors.index.json", {"weight_map": names})
    found = accept(model)
    assert {"part-0.safetensors", "part-1.safetensors"} <= found.files.keys()
    assert found.facts.ignored == {"other.safetensors": "not among the model's weights"}


def test_an_adapter_is_known_as_such(tmp_path: Path) -> None:
    assert accept(write_adapter(tmp_path / "adapter", 1, 0.1)).facts.kind == "adapter"
    whole = write_model(tmp_path / "both", random_tensors(1))
    (whole / "tokenizer.json").write_text("{}")
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        (whole / name).write_bytes((tmp_path / "adapter" / name).read_bytes())
    assert accept(whole).facts.kind == "model"


@pytest.mark.parametrize(
    ("field", "value"),
    [("use_dora", True), ("peft_type", "IA3"), ("alpha_pattern", {"q_proj": 3}), ("lora_bias", True)],
)
def test_an_adapter_of_a_kind_that_is_not_known_is_refused(tmp_path: Path, field: str, value: object) -> None:
    adapter = write_adapter(tmp_path / "adapter", 1, 0.1)
    edit_json(adapter / "adapter_config.json", **{field: value})
    with pytest.raises(Refused, match="put it into the model"):
        accept(adapter)
