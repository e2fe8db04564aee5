"""The trainer on Megatron-core against the plain one: the same promises, the same bytes where bytes are promised.

A process group takes ten seconds to start, so that all tests of a layout share one.
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from transformers import AutoModelForCausalLM, PreTrainedConfig

from stepwell.policy.trainers.megatron.layout import Layout
from stepwell.policy.trainers.megatron.trainer import MegatronTrainer
from stepwell.policy.trainers.protocol import (
    ComputeDtype,
    NonFinite,
    RankLost,
    StepResult,
    Trainer,
    UnsupportedModel,
    WrongParent,
)
from stepwell.policy.trainers.start import start_trainer
from stepwell.policy.trainers.torch_trainer import TorchTrainer
from stepwell.policy.weights import DigestMismatch, Weights, load_folder
from tests.megatron_models import LLAMA_4, QWEN3_2, QWEN3_MOE, batch_at
from tests.recorded_batches import recorded_recipe
from tests.small_models import OPEN, OPTIMISER, REWARDS, make_folder

TIMEOUT_S = 60.0
PROBE = tuple(range(1, 40))
LOGPROB_NATS = 1e-5
"""Between backends, at float32."""
RELATIVE = 1e-5
"""Of loss and gradient norm, between backends."""
MOVED = 0.02
"""Of the learning rate: how far apart weights may be after a step. AdamW divides by the gradient's own size, and so
makes of a rounding of a gradient near 0 a part of a step."""


@dataclass(frozen=True)
class Case:
    """A model in a layout."""

    name: str
    config: PreTrainedConfig
    layout: Layout
    freeze_router: bool = False
    compute_dtype: ComputeDtype = "float32"


CASES = [
    Case("qwen3, tensor 2", QWEN3_2, Layout(2)),
    Case("llama, data 2", LLAMA_4, Layout(1, 2)),
    Case("qwen3-moe, tensor 2, expert 2, frozen router", QWEN3_MOE, Layout(2, 1, 2), freeze_router=True),
]
LONG = [
    Case("qwen3-moe, tensor 2", QWEN3_MOE, Layout(2)),
    Case("qwen3, tensor 2, data 2", QWEN3_2, Layout(2, 2)),
    Case("qwen3-moe, tensor 2, data 2, expert 2", QWEN3_MOE, Layout(2, 2, 2)),
    Case("llama, tensor 2", LLAMA_4, Layout(2)),
]


@dataclass(frozen=True)
class Pair:
    """Both trainers, at version 0."""

    case: Case
    folder: Path
    plain: TorchTrainer
    megatron: Trainer
    version_0: Path
    """Checkpoint, written by the plain one."""


def start(case: Case, folder: Path) -> Trainer:
    if not case.freeze_router:
        layout = case.layout
        recipe = recorded_recipe(
            backend="megatron",
            tensor_parallel=layout.tensor,
            data_parallel=layout.data,
            compute_dtype=case.compute_dtype,
            rank_timeout_s=TIMEOUT_S,
        )
        if layout.expert > 1:  # the recipe's own policy has no experts, and refuses the key
            keys = {"expert_parallel": layout.expert}
            recipe = recipe.model_copy(update={"trainer": recipe.trainer.model_copy(update=keys)})
        return start_trainer(recipe, folder)
    return start_without_recipe(case, folder)


def start_without_recipe(case: Case, folder: Path) -> Trainer:
    return MegatronTrainer.from_folder(
        folder,
        OPTIMISER,
        OPEN,
        threads=1,
        layout=case.layout,
        timeout_s=TIMEOUT_S,
        compute_dtype=case.compute_dtype,
        freeze_router=case.freeze_router,
    )


def ranks() -> list[psutil.Process]:
    return [
        child
        for child in psutil.Process().children()
        if child.status() != psutil.STATUS_ZOMBIE and any("megatron.rank_process" in word for word in child.cmdline())
    ]


@pytest.fixture(
    scope="module",
    params=[*CASES, *(pytest.param(case, marks=pytest.mark.long) for case in LONG)],
    ids=lambda case: case.name,
)
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    case: Case = request.param
    folder = make_folder(tmp_path_factory.mktemp("model") / "model", case.config)
    plain = TorchTrainer.from_folder(folder, OPTIMISER, OPEN, threads=1, freeze_router=case.freeze_router)
    version_0 = tmp_path_factory.mktemp("checkpoint") / "0"
    plain.save_checkpoint(version_0)
    megatron = start(case, folder)
    assert len(ranks()) == case.layout.ranks
    yield Pair(case, folder, plain, megatron, version_0)
    megatron.close()
    megatron.close()
    assert ranks() == []


@pytest.fixture
def pair(shared: Pair) -> Pair:
    for trainer in (shared.plain, shared.megatron):
        trainer.load_checkpoint(shared.version_0)
    return shared


def test_version_0_has_the_same_digests_and_log_probabilities(pair: Pair) -> None:
    assert pair.megatron.digests() == pair.plain.digests()
    assert pair.megatron.probe(PROBE) == pytest.approx(pair.plain.probe(PROBE), abs=LOGPROB_NATS)
    assert pair.megatron.environment.ranks == pair.case.layout.ranks
    assert pair.megatron.environment != pair.plain.environment


def assert_same_step(ours: StepResult, theirs: StepResult) -> None:
    exact = {"step", "version", "learning_rate", "tokens", "trained_tokens", "generated_tokens", "loss_tokens"}
    assert ours.model_dump(include=exact) == theirs.model_dump(include=exact)
    for name in ("loss", "grad_norm", "entropy", "kl_mean", "mismatch_mean", "mismatch_max"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name), rel=RELATIVE, abs=1e-6), name


def assert_near(ours: Weights, theirs: Weights, steps: int) -> None:
    assert ours.aliases == theirs.aliases
    assert ours.tensors.keys() == theirs.tensors.keys()
    for name, tensor in ours.tensors.items():
        bound = steps * MOVED * OPTIMISER.learning_rate
        torch.testing.assert_close(tensor, theirs.tensors[name], rtol=0, atol=bound, msg=name)


def test_two_steps_and_their_export_match_the_plain_trainer(pair: Pair, tmp_path: Path) -> None:
    for version in (0, 1):
        theirs = pair.plain.step(batch_at(version), OPTIMISER)
        ours = pair.megatron.step(batch_at(version), OPTIMISER)
        assert_same_step(ours, theirs)
        assert ours.padded_tokens < theirs.padded_tokens
    pair.plain.export(tmp_path / "plain")
    pair.megatron.export(tmp_path / "megatron")
    ours_w = load_folder(tmp_path / "megatron")
    before = load_folder(pair.folder)
    assert_near(ours_w, load_folder(tmp_path / "plain"), 2)
    for name, tensor in ours_w.tensors.items():
        frozen = pair.case.freeze_router and name.endswith(".mlp.gate.weight")
        assert torch.equal(tensor, before.tensors[name]) == frozen, name
    assert json.loads((tmp_path / "megatron" / "config.json").read_text()) == json.loads(
        (tmp_path / "plain" / "config.json").read_text()
    )
    model: Any = AutoModelForCausalLM.from_pretrained(tmp_path / "megatron")
    ids = torch.tensor([PROBE])
    own = model(input_ids=ids).logits[0, :-1].log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
    assert pair.megatron.probe(PROBE) == pytest.approx(own.tolist(), abs=LOGPROB_NATS)
    with pytest.raises(FileExistsError):
        pair.megatron.export(tmp_path / "megatron")


def test_same_layout_gives_the_same_bits_and_either_backend_takes_up_the_other(pair: Pair, tmp_path: Path) -> None:
    pair.megatron.step(batch_at(0))
    pair.megatron.save_checkpoint(tmp_path / "1")
    at_1 = pair.megatron.digests()
    pair.megatron.step(batch_at(1))
    straight = pair.megatron.digests()
    pair.plain.load_checkpoint(tmp_path / "1")
    assert (pair.plain.version, pair.plain.digests()) == (1, at_1)
    pair.plain.save_checkpoint(tmp_path / "again")
    pair.megatron.load_checkpoint(tmp_path / "again")
    assert (pair.megatron.version, pair.megatron.digests()) == (1, at_1)
    pair.megatron.step(batch_at(1))
    assert pair.megatron.digests() == straight
    with pytest.raises(FileExistsError):
        pair.megatron.save_checkpoint(tmp_path / "1")


@pytest.mark.parametrize("shared", CASES[:1], indirect=True, ids=lambda case: case.name)
def test_a_checkpoint_of_one_layout_goes_on_in_another_and_in_torch(pair: Pair, tmp_path: Path) -> None:
    pair.megatron.step(batch_at(0))
    pair.megatron.save_checkpoint(tmp_path / "1")
    at_1 = pair.megatron.digests()
    straight = pair.megatron.step(batch_at(1))
    pair.megatron.export(tmp_path / "straight")
    copies = start(replace(pair.case, layout=Layout(1, 2)), pair.folder)
    try:
        for name, other in (("copies", copies), ("torch", pair.plain)):
            other.load_checkpoint(tmp_path / "1")
            assert (other.version, other.digests()) == (1, at_1), name
            assert_same_step(other.step(batch_at(1)), straight)
            other.export(tmp_path / name)
            assert_near(load_folder(tmp_path / name), load_folder(tmp_path / "straight"), 1)
    finally:
        copies.close()


def test_refused_step_and_refused_checkpoint_change_nothing(pair: Pair, tmp_path: Path) -> None:
    before = pair.megatron.digests()
    with pytest.raises(NonFinite, match=r"the loss is .*inf"):
        pair.megatron.step(batch_at(0, [reward * 1e38 for reward in REWARDS]))
    with pytest.raises(WrongParent, match="version 0 is loaded"):
        pair.megatron.step(batch_at(3))
    shutil.copytree(pair.version_0, tmp_path / "damaged")
    damaged = bytearray((tmp_path / "damaged" / "masters.safetensors").read_bytes())
    damaged[-3] ^= 1
    (tmp_path / "damaged" / "masters.safetensors").write_bytes(damaged)
    with pytest.raises(DigestMismatch, match="master weights have the digest"):
        pair.megatron.load_checkpoint(tmp_path / "damaged")
    larger = type(pair.case.config)(**{**pair.case.config.to_dict(), "vocab_size": 64})
    other = TorchTrainer.from_folder(make_folder(tmp_path / "other", larger), OPTIMISER, OPEN, threads=1)
    other.save_checkpoint(tmp_path / "larger")
    with pytest.raises(DigestMismatch, match="is another model's checkpoint: it differs in"):
        pair.megatron.load_checkpoint(tmp_path / "larger")
    pair.megatron.step(batch_at(0))
    pair.megatron.load_checkpoint(pair.version_0)
    assert pair.megatron.digests() == before


def test_layout_and_router_that_do_not_fit_are_refused_before_a_process_starts(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "model", QWEN3_2)
    before = ranks()
    with pytest.raises(UnsupportedModel, match="tensor_parallel is 4, which does not divide the model's 2 key-value"):
        start_without_recipe(Case("", QWEN3_2, Layout(4)), folder)
    with pytest.raises(UnsupportedModel, match="freeze_router would do nothing"):
        start_without_recipe(Case("", QWEN3_2, Layout(1), freeze_router=True), folder)
    with pytest.raises(UnsupportedModel, match="freeze_router would do nothing"):
        TorchTrainer.from_folder(folder, OPTIMISER, OPEN, threads=1, freeze_router=True)
    assert ranks() == before


@pytest.mark.long
def test_bfloat16_and_a_killed_rank(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "model", QWEN3_2)
    plain = TorchTrainer.from_folder(folder, OPTIMISER, OPEN, threads=1, compute_dtype="bfloat16")
    others = ranks()
    megatron = start(Case("", QWEN3_2, Layout(2), compute_dtype="bfloat16"), folder)
    try:
        assert megatron.digests() == plain.digests()
        assert megatron.probe(PROBE) == pytest.approx(plain.probe(PROBE), abs=0.1)
        theirs, ours = plain.step(batch_at(0)), megatron.step(batch_at(0))
        assert ours.grad_norm == pytest.approx(theirs.grad_norm, rel=0.02)
        next(rank for rank in ranks() if rank not in others).kill()
        with pytest.raises(RankLost, match=r"ended with status -9|was lost|ended"):
            megatron.step(batch_at(1))
    finally:
        megatron.close()
    assert ranks() == others
