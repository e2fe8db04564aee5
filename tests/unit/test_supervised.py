"""Supervised training by the trainer's step, against plain torch; the same bits twice."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from stepwell.policy.supervised import LIKELIHOOD, supervise
from stepwell.policy.trainers.torch_trainer import TorchTrainer
from stepwell.recipe.policies import WarmUpSection
from stepwell.rl.config import OptimiserConfig
from stepwell.rl.samples import TrainSample
from tests.small_models import LLAMA, PACKING, make_folder, make_samples

RATE = OptimiserConfig(learning_rate=1e-2, warmup_steps=2, decay="linear", decay_steps=20, max_grad_norm=0.5)
ROWS = [sample.model_copy(update={"logprobs": (0.0,) * len(sample.logprobs)}) for sample in make_samples(6)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("llama") / "model", LLAMA)


def trained(
    folder: Path, rows: list[TrainSample], *, steps: int, count: int, seed: int = 0
) -> tuple[TorchTrainer, dict[str, float]]:
    trainer = TorchTrainer.from_folder(folder, RATE, LIKELIHOOD, threads=1)
    warm_up = WarmUpSection(tasks=len(rows), steps=steps, demonstrations=count, optimiser=RATE)
    return trainer, supervise(trainer, rows, warm_up, PACKING, seed)


def nll_sum(model: Any, row: TrainSample) -> torch.Tensor:
    """Negative log-likelihood of the generated tokens, by the model's own logits."""
    ids_T = torch.tensor(row.token_ids)
    losses_T = torch.nn.functional.cross_entropy(model(ids_T[None]).logits[0, :-1], ids_T[1:], reduction="none")
    return (losses_T * torch.tensor(row.generated[1:])).sum()


def test_a_step_is_that_of_the_likelihood_by_plain_torch(folder: Path) -> None:
    trainer, metrics = trained(folder, ROWS, steps=1, count=len(ROWS))
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    count = sum(sum(row.generated) for row in ROWS)
    loss = torch.stack([nll_sum(model, row) for row in ROWS]).sum() / count
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    torch.optim.AdamW(model.parameters(), lr=0.5e-2, weight_decay=0.0).step()
    assert metrics["loss"] == pytest.approx(loss.item(), rel=1e-5)
    found = trainer._masters.weights().tensors  # pyright: ignore[reportPrivateUsage]
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(found[name], parameter, rtol=1e-4, atol=2e-5)


def test_the_loss_falls(folder: Path) -> None:
    _, metrics = trained(folder, ROWS, steps=25, count=3)
    assert metrics["loss"] < 0.7 * metrics["first_loss"]
    assert (metrics["steps"], metrics["rows"]) == (25, 6)


def test_the_same_seed_gives_the_same_bits_and_another_does_not(folder: Path) -> None:
    digests = [trained(folder, ROWS, steps=3, count=4, seed=seed)[0].digests() for seed in (0, 0, 1)]
    assert digests[0] == digests[1]
    assert digests[0].exported != digests[2].exported


@pytest.mark.parametrize(("count", "steps"), [(2, 3), (4, 3), (9, 2)])
def test_every_row_is_shown_once_before_any_is_shown_twice(folder: Path, count: int, steps: int) -> None:
    shown: list[str] = []

    class Counted(TorchTrainer):
        def step(self, batch, optimiser=None):
            shown.extend(recorded.content for recorded in batch.manifest.samples)
            return super().step(batch, optimiser)

    trainer = Counted.from_folder(folder, RATE, LIKELIHOOD, threads=1)
    supervise(trainer, ROWS, WarmUpSection(tasks=6, steps=steps, demonstrations=count, optimiser=RATE), PACKING, 0)
    assert len(shown) == count * steps
    contents = sorted(row.content_digest() for row in ROWS)
    for start in range(0, len(shown) - len(ROWS) + 1, len(ROWS)):
        assert sorted(shown[start : start + len(ROWS)]) == contents
