"""A step may be given another optimiser than the one before: learning rate, moments, clip."""

from pathlib import Path

import pytest
import torch

from stepwell.policy.weights import load_folder
from stepwell.rl.config import OptimiserConfig
from tests.small_models import OPTIMISER, REWARDS, make_batch, make_folder, make_samples, make_trainer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("model") / "qwen3")


FASTER = OPTIMISER.model_copy(update={"learning_rate": 4e-3})
OTHER = OptimiserConfig(learning_rate=2e-3, beta1=0.8, beta2=0.9, epsilon=1e-6, weight_decay=0.1, max_grad_norm=0.5)


@pytest.mark.parametrize("optimiser", [FASTER, OTHER], ids=["learning rate", "everything"])
def test_step_with_another_optimiser_is_that_of_a_trainer_made_with_it(
    folder: Path, optimiser: OptimiserConfig
) -> None:
    batch = make_batch(make_samples(12), REWARDS)
    told, made = make_trainer(folder), make_trainer(folder, optimiser=optimiser)
    assert told.step(batch, optimiser).learning_rate == made.step(batch).learning_rate == optimiser.learning_rate
    assert told.digests() == made.digests()


def test_another_optimiser_is_for_its_step_alone(folder: Path, tmp_path: Path) -> None:
    first = make_batch(make_samples(12), REWARDS)
    second = make_batch(make_samples(12, seed=1), REWARDS, version=1)
    trainer = make_trainer(folder)
    trainer.step(first, OTHER)
    trainer.save_checkpoint(tmp_path / "checkpoint")
    assert trainer.step(second).learning_rate == OPTIMISER.learning_rate
    # Nothing of it is left but weights and moments, which a checkpoint holds.
    fresh = make_trainer(folder)
    fresh.load_checkpoint(tmp_path / "checkpoint")
    fresh.step(second)
    assert trainer.digests() == fresh.digests()


def test_steps_told_their_rates_are_refolded_to_the_bit(folder: Path) -> None:
    batches = [make_batch(make_samples(12, seed=step), REWARDS, version=step) for step in range(3)]
    rates = [OPTIMISER, FASTER, OPTIMISER]
    ends = []
    for given in (rates, rates, [OPTIMISER] * 3):
        trainer = make_trainer(folder)
        for batch, optimiser in zip(batches, given, strict=True):
            trainer.step(batch, optimiser)
        ends.append(trainer.digests())
    assert ends[0] == ends[1] != ends[2]


def test_weights_move_in_proportion_to_the_rate(folder: Path, tmp_path: Path) -> None:
    batch = make_batch(make_samples(12), REWARDS)
    plain = OPTIMISER.model_copy(update={"weight_decay": 0.0})
    before, moved = load_folder(folder).tensors, []
    for number, factor in enumerate((1, 3)):
        trainer = make_trainer(folder)
        trainer.step(batch, plain.model_copy(update={"learning_rate": 1e-3 * factor}))
        trainer.export(tmp_path / str(number))
        after = load_folder(tmp_path / str(number)).tensors
        moved.append(torch.cat([(after[name] - before[name]).flatten() for name in before]).double())
    assert float((moved[1] - 3 * moved[0]).norm()) <= 1e-3 * float(moved[1].norm())


def test_schedule_goes_on_under_another_peak(folder: Path) -> None:
    warming = OPTIMISER.model_copy(update={"warmup_steps": 4})
    trainer = make_trainer(folder, optimiser=warming)
    rates = []
    for step, peak in enumerate((1e-3, 1e-3, 2e-3)):
        batch = make_batch(make_samples(12, seed=step), REWARDS, version=step)
        rates.append(trainer.step(batch, warming.model_copy(update={"learning_rate": peak})).learning_rate)
    assert rates == pytest.approx([0.25e-3, 0.5e-3, 1.5e-3])
