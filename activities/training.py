"""create_policy and train_step: a weight version is a fold of recorded batches.

Whoever asks for step `s` gets version `s + 1`: out of the ledger if it stands there, else by one step from version `s`,
which is in memory or is rebuilt (`activities.trainer_memory`).
"""

import asyncio
import shutil
import time
from pathlib import Path

from temporalio import activity

from activities.folders import get_folder, put_folder
from activities.recipe_at import recipe_at
from activities.stores import Stores
from activities.train_batch import read_batch
from activities.trainer_memory import TrainerMemory, in_thread
from activities.warm_up import warm_up
from activities.weights_record import WeightsRecord
from stepwell.contracts.run import RunRef, StepRef, VersionRef
from stepwell.events import CheckpointSaved, StepAdmitted, StepTrained, VersionCreated
from stepwell.events.streams import run_stream
from stepwell.policy.origin import Origin, make_version_0
from stepwell.policy.trainers.mismatch import Mismatch, mismatch_under
from stepwell.policy.trainers.protocol import TrainBatch, Trainer
from stepwell.policy.trainers.torch_trainer import TorchTrainer
from stepwell.recipe.recipe import Recipe
from stepwell.rl.schedule import generation_version


class MismatchTooLarge(RuntimeError):
    """Trainer and engine disagree about what was sampled: a stale version, a broken cache, or a wrong kernel."""


class NoBatch(LookupError):
    """The step was not admitted."""


class TrainingActivities:
    """Owns the trainer of this process."""

    def __init__(self, stores: Stores, cache: Path, models: Path) -> None:
        """Args:
        stores: where everything is read and recorded.
        cache: this process's own folder.
        models: folder for models that are unpacked once.
        """
        self._stores = stores
        self._cache = cache
        self._models = models
        self._memory = TrainerMemory(stores, cache)
        self._one_at_a_time = asyncio.Lock()

    @activity.defn(name="create_policy")
    async def create_policy(self, request: RunRef) -> VersionRef:
        """Makes version 0, once: by the warm-up that the recipe names, or out of a model folder."""
        async with self._one_at_a_time:
            weights = await WeightsRecord.read(self._stores, request.run)
            standing = weights.version(0)
            if standing is not None:
                return standing
            facts = await self._stores.run_facts(request.run)
            began = time.monotonic()
            given, warmed = self._memory.scratch("given"), self._memory.scratch("version-0")
            try:
                origin, folder = await asyncio.to_thread(make_version_0, facts.recipe, given, self._models), given
                if facts.recipe.warm_up is not None:
                    origin = await warm_up(self._stores, facts, facts.recipe.warm_up, given, origin, warmed)
                    folder = warmed
                trainer = await asyncio.to_thread(_alone, facts.recipe, folder)
                await self._record_version_0(weights, trainer, origin, began)
            finally:
                for each in (given, warmed):
                    shutil.rmtree(each, ignore_errors=True)
            return _standing(weights, 0)

    @activity.defn(name="train_step")
    async def train_step(self, request: StepRef) -> VersionRef:
        """Applies one optimiser step to the batch that was admitted; asked again, it answers from the ledger.

        Raises:
            NoBatch: the step was not admitted.
            NonFinite: loss or gradient.
            DigestMismatch: a version that was rebuilt differs from the recorded one.
            MismatchTooLarge: trainer and engine disagree beyond the recipe's bound.
            RankLost: a process of the trainer died or hangs.
        """
        async with self._one_at_a_time:
            weights = await WeightsRecord.read(self._stores, request.run)
            try:
                if weights.version(request.step + 1) is None:
                    trainer = await self._memory.at_version(weights, request.step)
                    await self._step(weights, trainer, request.step)
                held = self._memory.holds(request.run, request.step + 1)
                if held is not None:
                    await self._memory.save_if_due(weights, held)
            except BaseException:
                await self._memory.drop()  # whatever it holds now, the ledger does not say so
                raise
            return _standing(weights, request.step + 1)

    async def close(self) -> None:
        """Ends what the trainer started."""
        await self._memory.drop()

    async def _step(self, weights: WeightsRecord, trainer: Trainer, step: int) -> None:
        began = time.monotonic()
        recipe = await recipe_at(self._stores, weights.run, step)
        manifest = await self._manifest_of(weights.run, step)
        batch = await read_batch(self._stores, manifest)
        compared = await self._compare(weights, recipe, batch, step)
        result = await in_thread(trainer, trainer.step, batch, recipe.optimiser)
        metrics = result.metrics()
        if compared is not None:
            metrics |= {"policy_shift_mean": result.mismatch_mean, "policy_shift_max": result.mismatch_max}
            metrics |= {"mismatch_mean": compared.mean, "mismatch_max": compared.max}
        if (found := metrics["mismatch_mean"]) > recipe.run.mismatch_bound:
            raise MismatchTooLarge(
                f"step {step}: the mean of |log-probability by the trainer - by the engine| is {found:.2e}, "
                f"run.mismatch_bound is {recipe.run.mismatch_bound:.0e}: the engine served other weights than it said, "
                "or computes in another precision; compare engine.dtype and trainer.compute_dtype"
            )
        timings = {name: metrics.pop(name) for name in ("forward_backward_s", "optimiser_s")}
        trained = StepTrained(
            step=step,
            parent=step,
            version=step + 1,
            manifest=manifest,
            digests=await in_thread(trainer, trainer.digests),
            export=await self._export(trainer),
            probe=await in_thread(trainer, trainer.probe, tuple(weights.created().probe_ids)),
            metrics=metrics,
            timings_s=timings,
            environment=trainer.environment.model_dump(mode="json"),
            duration_s=time.monotonic() - began,
        )
        await weights.append(trained)

    async def _compare(self, weights: WeightsRecord, recipe: Recipe, batch: TrainBatch, step: int) -> Mismatch | None:
        """The engines' log-probabilities against ours under the version that generated the batch; None where that is
        the version to be trained, which compares them itself."""
        generated_by = generation_version(step, recipe.run.max_staleness)
        if generated_by == step:
            return None
        export = weights.made(generated_by).export
        folder = await get_folder(self._stores.blobs, export, self._cache)
        compared = await asyncio.to_thread(mismatch_under, folder, batch)
        if export != weights.created().export:  # version 0 stays: the trainer exports with its files
            shutil.rmtree(folder, ignore_errors=True)
        return compared

    async def _record_version_0(self, weights: WeightsRecord, trainer: Trainer, origin: Origin, began: float) -> None:
        """With its checkpoint, in one append: an export that is rounded could not give back the master weights."""
        export = await self._export(trainer)
        created = VersionCreated(
            origin=origin.name,
            digests=await in_thread(trainer, trainer.digests),
            export=export,
            probe_ids=list(origin.probe_ids),
            probe=await in_thread(trainer, trainer.probe, origin.probe_ids),
            metrics=origin.metrics,
            environment=trainer.environment.model_dump(mode="json"),
            duration_s=time.monotonic() - began,
        )
        files = await self._memory.put_checkpoint(trainer)
        await weights.append(created, CheckpointSaved(version=0, files=files))

    async def _export(self, trainer: Trainer) -> str:
        folder = self._memory.scratch(f"version-{trainer.version}")
        try:
            await in_thread(trainer, trainer.export, folder)
            return await put_folder(self._stores.blobs, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    async def _manifest_of(self, run: str, step: int) -> str:
        recorded = await self._stores.ledger.read(run_stream(run))
        for each in recorded:
            if isinstance(each.event, StepAdmitted) and each.event.step == step:
                return each.event.manifest
        raise NoBatch(f"run {run}: step {step} was not admitted, so there is no batch to train")


def _alone(recipe: Recipe, folder: Path) -> TorchTrainer:
    """A trainer in this process alone: what version 0 is does not depend on backend or ranks."""
    return TorchTrainer.from_folder(
        folder,
        recipe.optimiser,
        recipe.rl,
        threads=recipe.trainer.threads,
        compute_dtype=recipe.trainer.compute_dtype,
        freeze_router=recipe.trainer.freeze_router,
    )


def _standing(weights: WeightsRecord, version: int) -> VersionRef:
    made = weights.version(version)
    assert made is not None
    return made
