"""create_policy and train_step: a weight version is a fold of recorded batches.

The trainer in memory is a cache of that fold. Whoever asks for step `s` gets version `s + 1`: out of the ledger if it
stands there, else by one step from the version in memory, else from the last checkpoint and the batches after it, each
rebuilt version compared with its recorded digests.
"""

import asyncio
import shutil
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

from temporalio import activity

from activities.folders import get_folder, put_folder
from activities.folds import version_ref
from activities.heartbeat import beating
from activities.stores import Stores
from activities.train_batch import read_batch
from db.recorded import Recorded
from stepwell.contracts.run import RunRef, StepRef, VersionRef
from stepwell.events import CheckpointSaved, StepAdmitted, StepTrained, VersionCreated
from stepwell.events.base import Event
from stepwell.events.streams import run_stream, weights_stream
from stepwell.policy.origin import Origin, make_version_0
from stepwell.policy.trainers.mismatch import Mismatch, mismatch_under
from stepwell.policy.trainers.protocol import TrainBatch, Trainer
from stepwell.policy.trainers.torch_trainer import TorchTrainer
from stepwell.policy.weights import DigestMismatch
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
        self._run: str | None = None
        self._trainer: Trainer | None = None
        self._one_at_a_time = asyncio.Lock()

    @activity.defn(name="create_policy")
    async def create_policy(self, request: RunRef) -> VersionRef:
        """Makes version 0, once: by the warm-up that the recipe names, or out of a model folder."""
        async with beating(), self._one_at_a_time:
            weights = await self._stores.ledger.read(weights_stream(request.run))
            standing = _version(weights, 0)
            if standing is not None:
                return standing
            recipe = (await self._stores.run_facts(request.run)).recipe
            began = time.monotonic()
            folder = self._scratch("version-0")
            try:
                origin = await asyncio.to_thread(make_version_0, recipe, folder, self._models)
                trainer = await self._load(recipe, folder)
                return await self._append_version_0(request.run, trainer, origin, time.monotonic() - began)
            finally:
                shutil.rmtree(folder, ignore_errors=True)

    @activity.defn(name="train_step")
    async def train_step(self, request: StepRef) -> VersionRef:
        """Applies one optimiser step to the batch that was admitted; asked again, it answers from the ledger.

        Raises:
            NoBatch: the step was not admitted.
            NonFinite: loss or gradient.
            DigestMismatch: a version that was rebuilt differs from the recorded one.
            MismatchTooLarge: trainer and engine disagree beyond the recipe's bound.
        """
        async with beating(), self._one_at_a_time:
            weights = await self._stores.ledger.read(weights_stream(request.run))
            standing = _version(weights, request.step + 1)
            if standing is not None:
                return standing
            recipe = (await self._stores.run_facts(request.run)).recipe
            try:
                trainer = await self._at_version(request.run, recipe, weights, request.step)
                return await self._step(request.run, recipe, trainer, request.step, len(weights))
            except BaseException:
                self._trainer = None  # whatever it holds now, the ledger does not say so
                raise

    async def _step(self, run: str, recipe: Recipe, trainer: Trainer, step: int, next_seq: int) -> VersionRef:
        began = time.monotonic()
        manifest = await self._manifest_of(run, step)
        batch = await read_batch(self._stores, manifest)
        compared = await self._compare(run, recipe, batch, step)
        result = await asyncio.to_thread(trainer.step, batch)
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
        folder = self._scratch(f"version-{step + 1}")
        try:
            await asyncio.to_thread(trainer.export, folder)
            export = await put_folder(self._stores.blobs, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        timings = {name: metrics.pop(name) for name in ("forward_backward_s", "optimiser_s")}
        probe_ids = tuple(await self._probe_ids(run))
        trained = StepTrained(
            step=step,
            parent=step,
            version=step + 1,
            manifest=manifest,
            digests=await asyncio.to_thread(trainer.digests),
            export=export,
            probe=await asyncio.to_thread(trainer.probe, probe_ids),
            metrics=metrics,
            timings_s=timings,
            environment=trainer.environment.model_dump(mode="json"),
            duration_s=time.monotonic() - began,
        )
        made = await self._append(run, trained, next_seq)
        if (step + 1) % recipe.run.checkpoint_every == 0:
            await self._checkpoint(run, trainer, next_seq + 1)
        return made

    async def _compare(self, run: str, recipe: Recipe, batch: TrainBatch, step: int) -> Mismatch | None:
        """The engines' log-probabilities against ours under the version that generated the batch; None where that is
        the version to be trained, which compares them itself."""
        generated_by = generation_version(step, recipe.run.max_staleness)
        if generated_by == step:
            return None
        events = [recorded.event for recorded in await self._stores.ledger.read(weights_stream(run))]
        made = [event for event in events if isinstance(event, VersionCreated | StepTrained)]
        for event in made:
            if event.version == generated_by:
                folder = await get_folder(self._stores.blobs, event.export, self._cache)
                compared = await asyncio.to_thread(mismatch_under, folder, batch)
                if event.export != made[0].export:  # version 0 stays: the trainer exports with its files
                    shutil.rmtree(folder, ignore_errors=True)
                return compared
        raise LookupError(f"run {run} has no version {generated_by}, which generated step {step}")

    async def _at_version(self, run: str, recipe: Recipe, weights: Sequence[Recorded], version: int) -> Trainer:
        """A trainer that holds a version: the one in memory, or rebuilt from the last checkpoint."""
        if self._trainer is not None and self._run == run and self._trainer.version == version:
            return self._trainer
        events = [recorded.event for recorded in weights]
        checkpoints = [event for event in events if isinstance(event, CheckpointSaved) and event.version <= version]
        created = next((event for event in events if isinstance(event, VersionCreated)), None)
        if created is None:
            raise LookupError(f"run {run} has no version 0, so no version {version} can be made")
        trainer = await self._load(recipe, await get_folder(self._stores.blobs, created.export, self._cache))
        if checkpoints:
            newest = max(checkpoints, key=lambda event: event.version)
            folder = await get_folder(self._stores.blobs, newest.files, self._cache)
            await asyncio.to_thread(trainer.load_checkpoint, folder)
            shutil.rmtree(folder, ignore_errors=True)
        trained = {event.step: event for event in events if isinstance(event, StepTrained)}
        for step in range(trainer.version, version):
            batch = await read_batch(self._stores, trained[step].manifest)
            await asyncio.to_thread(trainer.step, batch)
            found = await asyncio.to_thread(trainer.digests)
            if found != trained[step].digests:
                raise DigestMismatch(
                    f"version {step + 1} rebuilt from its batch has the digests {found}, recorded are "
                    f"{trained[step].digests}: another numeric environment? Recorded: {trained[step].environment}, "
                    f"here: {trainer.environment}"
                )
        self._run, self._trainer = run, trainer
        return trainer

    async def _append_version_0(self, run: str, trainer: Trainer, origin: Origin, duration_s: float) -> VersionRef:
        folder = self._scratch("export-0")
        try:
            await asyncio.to_thread(trainer.export, folder)
            export = await put_folder(self._stores.blobs, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        created = VersionCreated(
            origin=origin.name,
            digests=await asyncio.to_thread(trainer.digests),
            export=export,
            probe_ids=list(origin.probe_ids),
            probe=await asyncio.to_thread(trainer.probe, origin.probe_ids),
            metrics=origin.metrics,
            environment=trainer.environment.model_dump(mode="json"),
            duration_s=duration_s,
        )
        made = await self._append(run, created, 0)
        await self._checkpoint(run, trainer, 1)
        return made

    async def _load(self, recipe: Recipe, folder: Path) -> Trainer:
        def load() -> Trainer:
            return TorchTrainer.from_folder(
                folder,
                optimiser=recipe.optimiser,
                grpo=recipe.rl,
                threads=recipe.trainer.threads,
                compute_dtype=recipe.trainer.compute_dtype,
            )

        return await asyncio.to_thread(load)

    async def _checkpoint(self, run: str, trainer: Trainer, next_seq: int) -> None:
        folder = self._scratch("checkpoint")
        try:
            await asyncio.to_thread(trainer.save_checkpoint, folder)
            files = await put_folder(self._stores.blobs, folder, retention="checkpoint")
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        await self._stores.ledger.append(
            weights_stream(run),
            [CheckpointSaved(version=trainer.version, files=files)],
            expected_seq=next_seq,
            actor=self._stores.actor,
        )

    async def _manifest_of(self, run: str, step: int) -> str:
        recorded = await self._stores.ledger.read(run_stream(run))
        for each in recorded:
            if isinstance(each.event, StepAdmitted) and each.event.step == step:
                return each.event.manifest
        raise NoBatch(f"run {run}: step {step} was not admitted, so there is no batch to train")

    async def _probe_ids(self, run: str) -> list[int]:
        created = (await self._stores.ledger.read(weights_stream(run)))[0].event
        assert isinstance(created, VersionCreated)
        return created.probe_ids

    async def _append(self, run: str, event: Event, next_seq: int) -> VersionRef:
        stream = weights_stream(run)
        await self._stores.ledger.append(stream, [event], expected_seq=next_seq, actor=self._stores.actor)
        made = version_ref((await self._stores.ledger.read(stream, from_seq=next_seq))[0])
        assert made is not None
        return made

    def _scratch(self, name: str) -> Path:
        """A folder that does not exist yet."""
        return self._cache / f".{name}-{uuid.uuid4().hex}"


def _version(weights: Sequence[Recorded], version: int) -> VersionRef | None:
    return next((made for made in map(version_ref, weights) if made is not None and made.version == version), None)
