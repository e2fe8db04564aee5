"""The trainer that a recipe asks for."""

from pathlib import Path

from stepwell.policy.trainers.megatron.trainer import MegatronTrainer
from stepwell.policy.trainers.protocol import Trainer
from stepwell.policy.trainers.ranked_trainer import RankedTrainer
from stepwell.policy.trainers.torch_trainer import TorchTrainer
from stepwell.recipe.recipe import Recipe


def start_trainer(recipe: Recipe, folder: Path) -> Trainer:
    """A trainer at version 0, whose folder this is, with a fresh optimiser. Call it in a thread that lives as long as
    the trainer, and close the trainer.

    Raises:
        WeightsError, UnsupportedModel: the folder cannot be trained.
        RankLost: a process of the trainer did not start.
    """
    section = recipe.trainer
    if section.layout is not None:
        assert section.rank_timeout_s is not None  # TrainerSection fills it
        return MegatronTrainer.from_folder(
            folder,
            recipe.optimiser,
            recipe.rl,
            threads=section.threads,
            layout=section.layout,
            timeout_s=section.rank_timeout_s,
            compute_dtype=section.compute_dtype,
            freeze_router=section.freeze_router,
        )
    if section.rank_timeout_s is None:
        return TorchTrainer.from_folder(
            folder,
            recipe.optimiser,
            recipe.rl,
            threads=section.threads,
            compute_dtype=section.compute_dtype,
            freeze_router=section.freeze_router,
        )
    return RankedTrainer.from_folder(
        folder,
        recipe.optimiser,
        recipe.rl,
        threads=section.threads,
        ranks=section.ranks,
        timeout_s=section.rank_timeout_s,
        compute_dtype=section.compute_dtype,
        freeze_router=section.freeze_router,
    )
