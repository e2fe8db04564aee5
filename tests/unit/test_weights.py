"""Weights: digest, export, loading."""

import hashlib
import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from stepwell.policy.weights import (
    Weights,
    WeightsError,
    leaf_digests,
    load_folder,
    merkle_root,
    save_folder,
    weights_digest,
    weights_of,
)


def model(*, tied: bool = True, seed: int = 0) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=32,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        tie_word_embeddings=tied,
    )
    return LlamaForCausalLM(config)


def tagged(*parts: bytes) -> str:
    digest = hashlib.sha256(b"stepwell/merkle\0")
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def test_digest_is_the_documented_tree() -> None:
    weights = Weights(
        tensors={"b": torch.tensor([1.0, 2.0]), "a": torch.tensor([[3]], dtype=torch.int64)}, aliases={"c": "b"}
    )
    a = tagged(b"leaf", b"a", b"int64", b"[1,1]", (3).to_bytes(8, "little"))
    b = tagged(b"leaf", b"b", b"float32", b"[2]", bytes.fromhex("0000803f00000040"))
    c = tagged(b"alias", b"c", b"b")
    wanted = tagged(b"node", tagged(b"node", a.encode(), b.encode()).encode(), c.encode())
    assert weights_digest(weights) == wanted


def test_digest_does_not_depend_on_layout_or_order() -> None:
    matrix = torch.arange(6.0).reshape(2, 3)
    first = Weights(tensors={"x": matrix, "y": torch.ones(2)})
    second = Weights(tensors={"y": torch.ones(4)[::2], "x": matrix.T.contiguous().T})
    assert weights_digest(first) == weights_digest(second)


@pytest.mark.parametrize(
    "other",
    [
        Weights(tensors={"x": torch.tensor([1.0, 2.0])}),
        Weights(tensors={"y": torch.tensor([1.0, 3.0])}),
        Weights(tensors={"x": torch.tensor([[1.0, 3.0]])}),
        Weights(tensors={"x": torch.tensor([1.0, 3.0]).view(torch.int32)}),
        Weights(tensors={"x": torch.tensor([1.0, 3.0])}, aliases={"y": "x"}),
    ],
)
def test_digest_covers_name_shape_dtype_bytes_and_ties(other: Weights) -> None:
    assert weights_digest(other) != weights_digest(Weights(tensors={"x": torch.tensor([1.0, 3.0])}))


def test_leaf_of_one_level_does_not_pass_for_the_root_of_another() -> None:
    leaves = list(leaf_digests(weights_of(model())).values())
    assert merkle_root(leaves) != merkle_root([merkle_root(leaves[:2]), *leaves[2:]][1:])
    assert merkle_root([]) != merkle_root([merkle_root([])] * 2)


def test_tied_head_is_stored_once_under_an_alias() -> None:
    tied, untied = weights_of(model()), weights_of(model(tied=False))
    assert tied.aliases == {"lm_head.weight": "model.embed_tokens.weight"}
    assert "lm_head.weight" not in tied.tensors
    assert untied.aliases == {}
    assert "lm_head.weight" in untied.tensors


def test_alias_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="alias 'y'"):
        weights_digest(Weights(tensors={"x": torch.ones(1)}, aliases={"y": "z"}))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("tied", [True, False])
def test_export_has_the_digest_of_the_model_and_loads_in_transformers(
    tmp_path: Path, dtype: torch.dtype, tied: bool
) -> None:
    original = model(tied=tied).to(dtype)
    save_folder(weights_of(original), original.config.to_dict(), tmp_path / "export")
    assert weights_digest(load_folder(tmp_path / "export")) == weights_digest(weights_of(original))
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "export", dtype=dtype)
    assert weights_digest(weights_of(again)) == weights_digest(weights_of(original))


def test_equal_weights_give_equal_files(tmp_path: Path) -> None:
    (tmp_path / "parent").mkdir()
    (tmp_path / "parent" / "tokenizer.json").write_text("{}")
    for name in ("one", "two"):
        made = model()
        save_folder(weights_of(made), made.config.to_dict(), tmp_path / name, tokenizer_from=tmp_path / "parent")
    contents = [{file.name: file.read_bytes() for file in (tmp_path / name).iterdir()} for name in ("one", "two")]
    assert contents[0] == contents[1]
    assert set(contents[0]) == {"config.json", "model.safetensors", "aliases.json", "tokenizer.json"}


def test_export_never_overwrites_a_version(tmp_path: Path) -> None:
    made = model()
    with pytest.raises(FileExistsError, match="never written over"):
        save_folder(weights_of(made), made.config.to_dict(), tmp_path)


def test_failed_export_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        save_folder(weights_of(model()), {"bad": object()}, tmp_path / "export")
    assert list(tmp_path.iterdir()) == []


def test_shards_have_the_digest_of_the_whole(tmp_path: Path) -> None:
    tensors = {"a": torch.ones(2), "b": torch.zeros(3)}
    for name, tensor in tensors.items():
        save_file({name: tensor}, tmp_path / f"{name}.safetensors")
    index = {"weight_map": {name: f"{name}.safetensors" for name in tensors}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert weights_digest(load_folder(tmp_path)) == weights_digest(Weights(tensors=tensors))


def test_folder_without_weights_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"no weights: wanted model\.safetensors"):
        load_folder(tmp_path)


def test_damaged_weights_are_refused(tmp_path: Path) -> None:
    made = model()
    save_folder(weights_of(made), made.config.to_dict(), tmp_path / "export")
    file = tmp_path / "export" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(WeightsError, match="cannot be read"):
        load_folder(tmp_path / "export")
