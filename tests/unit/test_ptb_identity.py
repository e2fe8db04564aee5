"""Identity: a fine-tuned base passes in whatever form; an instruct, blended, foreign or patched model does not."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from cli.main import main
from stepwell.ptb.identity import Origin, UnreadableModel, Verdict, check_identity
from stepwell.ptb.identity.comparison import place_of
from tests.ptb_models import (
    CONFIG,
    Tensors,
    between,
    changed,
    in_blocks_of_float8,
    in_eight_bits,
    merged,
    moved,
    random_tensors,
    write_adapter,
    write_model,
)

BASE = random_tensors(1)
INSTRUCT = moved(BASE, 0.08, seed=2)
OTHER = random_tensors(3)
PERMUTED = torch.randperm(96, generator=torch.Generator().manual_seed(4))


def with_permuted_neurons(tensors: Tensors) -> Tensors:
    """The same function: neurons of the feed-forward layers in another order."""
    found = changed(tensors, "gate_proj", lambda tensor: tensor[PERMUTED])
    found = changed(found, "up_proj", lambda tensor: tensor[PERMUTED])
    return changed(found, "down_proj", lambda tensor: tensor[:, PERMUTED])


def renamed(tensors: Tensors) -> Tensors:
    """Names of another library."""
    return {name.replace("model.layers", "transformer.h").replace("proj", "linear"): t for name, t in tensors.items()}


def swapped(tensors: Tensors) -> Tensors:
    """Layers 1 and 2 change their places."""
    places = {"layers.1.": "layers.2.", "layers.2.": "layers.1."}
    return {
        next((name.replace(old, new) for old, new in places.items() if old in name), name): tensor
        for name, tensor in tensors.items()
    }


MADE: dict[str, tuple[Callable[[], Tensors], Verdict]] = {
    "unchanged": (lambda: BASE, Verdict.BASE),
    "fine-tuned": (lambda: moved(BASE, 0.02, 9), Verdict.BASE),
    "trained hard": (lambda: moved(BASE, 0.4, 9), Verdict.BASE),
    "bfloat16": (lambda: {name: each.bfloat16() for name, each in moved(BASE, 0.02, 9).items()}, Verdict.BASE),
    "8 bits": (lambda: in_eight_bits(moved(BASE, 0.02, 9)), Verdict.BASE),
    "float8 in blocks": (lambda: in_blocks_of_float8(moved(BASE, 0.02, 9)), Verdict.BASE),
    "head of its own": (lambda: BASE | {"lm_head.weight": BASE["model.embed_tokens.weight"]}, Verdict.BASE),
    "under a wrapper": (lambda: {f"language_model.{name}": each for name, each in BASE.items()}, Verdict.BASE),
    "a pinch of instruct": (lambda: between(BASE, INSTRUCT, 0.02), Verdict.BASE),
    "more tokens": (
        lambda: changed(BASE, "embed", lambda tensor: torch.cat([tensor, torch.randn(8, 64)])),
        Verdict.BASE,
    ),
    "instruct": (lambda: INSTRUCT, Verdict.INSTRUCT),
    "instruct, fine-tuned": (lambda: moved(INSTRUCT, 0.05, 9), Verdict.INSTRUCT),
    "instruct in 8 bits": (lambda: in_eight_bits(INSTRUCT), Verdict.INSTRUCT),
    "instruct, neurons permuted": (lambda: with_permuted_neurons(INSTRUCT), Verdict.INSTRUCT),
    "a layer of instruct": (lambda: BASE | {n: t for n, t in INSTRUCT.items() if ".2." in n}, Verdict.PARTLY_INSTRUCT),
    "30 % of the way to instruct": (lambda: between(BASE, INSTRUCT, 0.3), Verdict.BLENDED),
    "blended, then trained": (lambda: moved(between(BASE, INSTRUCT, 0.4), 0.03, 9), Verdict.BLENDED),
    "another model": (lambda: OTHER, Verdict.FOREIGN),
    "another model, renamed": (lambda: renamed(OTHER), Verdict.UNDECIDED),
    "a layer anew": (lambda: BASE | {n: t for n, t in OTHER.items() if ".3." in n}, Verdict.PARTLY_REPLACED),
    "a matrix more": (lambda: BASE | {"model.layers.4.x.weight": torch.randn(64, 64)}, Verdict.PARTLY_REPLACED),
    "layers exchanged": (lambda: swapped(BASE), Verdict.REORDERED),
    "tensors renamed": (lambda: renamed(BASE), Verdict.REORDERED),
    "half is missing": (lambda: {n: t for n, t in BASE.items() if "mlp" not in n}, Verdict.UNDECIDED),
    "packed in 4 bits": (
        lambda: changed(BASE, "mlp", lambda t: torch.zeros(t.numel() // 2, 1, dtype=torch.uint8)),
        Verdict.UNDECIDED,
    ),
}  # fmt: skip


UNCHANGED = ("unchanged", "head of its own", "under a wrapper", "more tokens")


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Base and instruct model."""
    folder = tmp_path_factory.mktemp("known")
    return write_model(folder / "base", BASE), write_model(folder / "instruct", INSTRUCT)


@pytest.mark.parametrize("made", MADE)
def test_each_model_is_told_by_its_weights(tmp_path: Path, known: tuple[Path, Path], made: str) -> None:
    make, verdict = MADE[made]
    report = check_identity(write_model(tmp_path / "model", make()), *known)
    assert (report.verdict, report.passed) == (verdict, verdict is Verdict.BASE)
    assert report.is_unchanged == (made in UNCHANGED)


@pytest.mark.parametrize("made", ["fine-tuned", "8 bits", "a layer of instruct"])
def test_a_model_in_three_files_is_told_as_in_one(tmp_path: Path, known: tuple[Path, Path], made: str) -> None:
    make, _ = MADE[made]
    one = check_identity(write_model(tmp_path / "one", make()), *known)
    assert check_identity(write_model(tmp_path / "three", make(), shards=3), *known) == one


def test_without_an_instruct_model_another_model_is_told_all_the_same(tmp_path: Path, known: tuple[Path, Path]) -> None:
    report = check_identity(write_model(tmp_path / "other", OTHER), known[0])
    assert report.verdict is Verdict.FOREIGN
    assert check_identity(known[1], known[0]).verdict is Verdict.BASE  # nothing tells it from a fine-tuned base


@pytest.mark.parametrize("size", [0.005, 0.02])
def test_an_adapter_and_the_same_merged_are_told_alike(tmp_path: Path, known: tuple[Path, Path], size: float) -> None:
    adapter = write_adapter(tmp_path / "adapter", 1, size)
    apart = check_identity(adapter, *known)
    together = check_identity(write_model(tmp_path / "merged", merged(BASE, adapter)), *known)
    assert (apart.verdict, together.verdict, apart.declared_base) == (Verdict.BASE, Verdict.BASE, "org/base")
    for one, other in zip(apart.tensors, together.tensors, strict=True):
        assert one.place is not None
        assert other.place is not None
        assert one.place.to_base == pytest.approx(other.place.to_base, abs=1e-5)


def test_places_agree_with_their_definition_in_float64() -> None:
    base, instruct = torch.randn(50, 40).double(), torch.randn(50, 40).double()
    model = base + 0.25 * (instruct - base) + 0.1 * torch.randn(50, 40).double()
    found = place_of(model.float(), base.float(), instruct.float())
    line, step = instruct - base, model - base
    assert found.to_base == pytest.approx(float(step.norm() / base.norm()), rel=1e-5)
    assert found.to_instruct == pytest.approx(float((model - instruct).norm() / instruct.norm()), rel=1e-5)
    assert found.place == pytest.approx(float((step * line).sum() / line.norm() ** 2), rel=1e-5)
    assert found.alignment == pytest.approx(float((step * line).sum() / line.norm() / step.norm()), rel=1e-5)
    assert found.cosine_base == pytest.approx(float((model * base).sum() / model.norm() / base.norm()), rel=1e-5)


def test_the_layers_show_where_the_instruct_model_is(tmp_path: Path, known: tuple[Path, Path]) -> None:
    tensors = BASE | {name: each for name, each in INSTRUCT.items() if ".2." in name}
    lines = check_identity(write_model(tmp_path / "model", tensors), *known).layers()
    assert [line.layer for line in lines] == ["0", "1", "2", "3", "embed_tokens.weight"]
    assert [line.origins for line in lines] == [(Origin.INSTRUCT if n == 2 else Origin.BASE,) for n in range(5)]
    assert [line.place for line in lines] == pytest.approx([1.0 if n == 2 else 0.0 for n in range(5)], abs=1e-6)


@pytest.mark.parametrize(
    ("change", "verdict", "field"),
    [
        ({"num_hidden_layers": 3}, Verdict.OTHER_CONFIGURATION, "num_hidden_layers"),
        ({"model_type": "llama"}, Verdict.OTHER_CONFIGURATION, "model_type"),
        ({"head_dim": None}, Verdict.BASE, None),
        ({"vocab_size": 201}, Verdict.BASE, "vocab_size"),
        ({"architectures": ["Qwen2ForCausalLM"]}, Verdict.BASE, "architectures"),
    ],
)
def test_core_fields_decide_and_others_are_told(
    tmp_path: Path, known: tuple[Path, Path], change: dict[str, object], verdict: Verdict, field: str | None
) -> None:
    report = check_identity(write_model(tmp_path / "model", BASE, CONFIG | change), *known)
    assert report.verdict is verdict
    assert [each.field for each in report.differences] == ([field] if field else [])


def test_a_text_part_is_read_as_the_model(tmp_path: Path, known: tuple[Path, Path]) -> None:
    config = {"model_type": "qwen3", "architectures": CONFIG["architectures"], "text_config": CONFIG}
    assert check_identity(write_model(tmp_path / "model", BASE, config), *known).differences == ()


def test_a_folder_without_weights_or_with_broken_ones_is_refused(tmp_path: Path, known: tuple[Path, Path]) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UnreadableModel, match=r"has no \.safetensors"):
        check_identity(tmp_path / "empty", *known)
    cut = write_model(tmp_path / "cut", BASE)
    (cut / "model.safetensors").write_bytes((cut / "model.safetensors").read_bytes()[:-10])
    with pytest.raises(UnreadableModel, match="is no safetensors file"):
        check_identity(cut, *known)


def test_the_command_prints_the_layers_and_exits_by_the_verdict(
    tmp_path: Path, known: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--base", str(known[0]), "--instruct", str(known[1])]
    model = write_model(tmp_path / "model", moved(BASE, 0.02, 9))
    assert main(["ptb", "identity", str(model), *asked]) == 0
    assert capsys.readouterr().out.startswith("base\n")
    assert main(["ptb", "identity", str(known[1]), *asked, "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["verdict"], said["passed"], len(said["layers"])) == ("instruct", False, 5)
    assert main(["ptb", "identity", str(tmp_path), *asked]) == 2
