"""The trainer of this process: a cache of the fold that a weight version is.

A version is taken from memory, else rebuilt: from the newest checkpoint that is whole, or from version 0, by the
recorded batches after it. Each version on the way is compared with its recorded digests, and where one is due for a
checkpoint and has none (its worker was killed before the checkpoint was complete), it is written then. So what a crash
costs is bounded by `run.checkpoint_every`.
"""

import asyncio
import logging
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

from activities.folders import get_folder, put_folder
from activities.recipe_at import recipe_at
from activities.stores import Stores
from activities.train_batch import read_batch
from activities.weights_record import WeightsRecord
from db.errors import BlobCorrupt, BlobMissing
from stepwell.events import CheckpointSaved, RunForked, StepTrained, VersionCreated
from stepwell.events.numbers import WeightDigests
from stepwell.policy.trainers.protocol import StepResult, Trainer
from stepwell.policy.trainers.start import start_trainer
from stepwell.policy.weights import DigestMismatch

P = ParamSpec("P")
T = TypeVar("T")

_log = logging.getLogger(__name__)


class TrainerMemory:
    """At most one trainer, of one run. Not for concurrent use."""

    def __init__(self, stores: Stores, cache: Path) -> None:
        """Args:
        stores: where batches and checkpoints are.
        cache: this process's own folder.
        """
        self._stores = stores
        self._cache = cache
        self._run: str | None = None
        self._trainer: Trainer | None = None

    def holds(self, run: str, version: int) -> Trainer | None:
        """The trainer, if it is at this version of this run."""
        held = self._trainer
        return held if held is not None and self._run == run and held.version == version else None

    async def at_version(self, weights: WeightsRecord, version: int, *, saving: bool = True) -> Trainer:
        """A trainer that holds a version that was made: from memory, or rebuilt.

        Args:
            weights: The run's.
            version: Which.
            saving: Whether checkpoints that are due on the way, and missing, are written.

        Raises:
            DigestMismatch: the rebuilt version is not the recorded one.
            NoVersion: it was not made.
        """
        held = self.holds(weights.run, version)
        if held is not None:
            return held
        damaged: set[int] = set()
        trainer = await self.begin(weights, version, damaged, saving=saving)
        if saving:
            await self.save_if_due(weights, trainer, again=trainer.version in damaged)
        while trainer.version < version:
            trained = weights.trained(trainer.version)
            await self.fold(weights, trainer)
            compare(await in_thread(trainer, trainer.digests), trained, trainer)
            if saving:
                await self.save_if_due(weights, trainer, again=trainer.version in damaged)
        return trainer

    async def fold(self, weights: WeightsRecord, trainer: Trainer) -> StepResult:
        """Applies the recorded step that follows the version in memory; what comes out is not compared.

        Raises:
            NoVersion: no step was trained after it.
            DigestMismatch: a row of its batch is not the recorded one.
        """
        trained = weights.trained(trainer.version)
        batch = await read_batch(self._stores, trained.manifest)
        recipe = await recipe_at(self._stores, weights.run, trained.step)
        return await in_thread(trainer, trainer.step, batch, recipe.optimiser)

    async def save_if_due(self, weights: WeightsRecord, trainer: Trainer, *, again: bool = False) -> None:
        """Saves the version in memory if the recipe asks for its checkpoint and there is none.

        Args:
            weights: the run's.
            trainer: holds a version of it.
            again: the checkpoint was recorded, but is damaged: its bytes are put once more.
        """
        version = trainer.version
        every = (await self._stores.run_facts(weights.run)).recipe.run.checkpoint_every
        recorded = weights.checkpoints().get(version)
        if version % every or (recorded is not None and not again):
            return
        files = await self.put_checkpoint(trainer)
        if recorded is None:
            await weights.append(CheckpointSaved(version=version, files=files))
            return
        _log.warning("run %s: the checkpoint of version %d was put again", weights.run, version)

    async def put_checkpoint(self, trainer: Trainer) -> str:
        """Stores a checkpoint; it is complete when its event stands. Returns the blob that the event names."""
        folder = self.scratch("checkpoint")
        try:
            await in_thread(trainer, trainer.save_checkpoint, folder)
            return await put_folder(self._stores.blobs, folder, retention="checkpoint")
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def drop(self) -> None:
        """Closes what is in memory, which the ledger no longer vouches for."""
        held, self._trainer, self._run = self._trainer, None, None
        if held is not None:
            await asyncio.to_thread(held.close)

    def scratch(self, name: str) -> Path:
        """A folder that does not exist yet."""
        return self._cache / f".{name}-{uuid.uuid4().hex}"

    async def begin(self, weights: WeightsRecord, version: int, damaged: set[int], *, saving: bool = True) -> Trainer:
        """A trainer at the newest version, up to one, that needs no batch of the run's own: of a whole checkpoint,
        or the one that the run begins with.

        Args:
            weights: the run's.
            version: the highest that it may be.
            damaged: takes the versions whose checkpoints were found damaged.
            saving: whether a fork's first checkpoint is written if it is missing.

        Raises:
            DigestMismatch: the version that the run begins with is not the recorded one.
        """
        await self.drop()
        checkpoints = {saved: files for saved, files in weights.checkpoints().items() if saved <= version}
        trainer = await self._load_version_0(weights)
        for saved in sorted(checkpoints, reverse=True):
            try:
                await self._take_up(weights, trainer, saved, checkpoints[saved])
                return trainer
            except (BlobMissing, BlobCorrupt, DigestMismatch) as error:
                damaged.add(saved)
                _log.warning(
                    "run %s: the checkpoint of version %d cannot be used (%s); the version before it is rebuilt from "
                    "an earlier one and the recorded batches",
                    weights.run,
                    saved,
                    error,
                )
                # What was in memory may be overwritten in part.
                await self.drop()
                trainer = await self._load_version_0(weights)
        if weights.fork is not None:
            return await self._go_on_from(weights, weights.fork, saving=saving)
        compare(await in_thread(trainer, trainer.digests), weights.created(), trainer)
        return trainer

    async def _go_on_from(self, weights: WeightsRecord, fork: RunForked, *, saving: bool) -> Trainer:
        """The version that a fork begins with. Its ancestor's trainer makes it, by the ancestor's recipe; the fork's
        takes it up as a checkpoint, which is then the fork's own first one."""
        await self.drop()
        ancestor = await self.at_version(await WeightsRecord.read(self._stores, fork.parent), fork.step, saving=False)
        folder = self.scratch("handed-over")
        try:
            await in_thread(ancestor, ancestor.save_checkpoint, folder)
            await self.drop()
            trainer = await self._load_version_0(weights)
            await in_thread(trainer, trainer.load_checkpoint, folder)
            compare(await in_thread(trainer, trainer.digests), weights.made(fork.step), trainer)
            if saving and fork.step not in weights.checkpoints():
                files = await put_folder(self._stores.blobs, folder, retention="checkpoint")
                await weights.append(CheckpointSaved(version=fork.step, files=files))
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        return trainer

    async def _take_up(self, weights: WeightsRecord, trainer: Trainer, version: int, files: str) -> None:
        folder = await get_folder(self._stores.blobs, files, self._cache)
        try:
            await in_thread(trainer, trainer.load_checkpoint, folder)
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        if trainer.version != version:
            raise DigestMismatch(f"it holds version {trainer.version}, version {version} was recorded")
        compare(await in_thread(trainer, trainer.digests), weights.made(version), trainer)

    async def _load_version_0(self, weights: WeightsRecord) -> Trainer:
        recipe = (await self._stores.run_facts(weights.run)).recipe
        folder = await get_folder(self._stores.blobs, weights.created().export, self._cache)
        starting = asyncio.ensure_future(asyncio.to_thread(start_trainer, recipe, folder))
        try:
            trainer = await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.to_thread((await starting).close)
            raise
        self._trainer, self._run = trainer, weights.run
        return trainer


async def in_thread(trainer: Trainer, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Runs a trainer's blocking work beside the event loop. An attempt that is cancelled ends it: nothing of it
    computes beside the next attempt."""
    running = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.to_thread(trainer.close)
        await asyncio.wait([running])
        if not running.cancelled():
            running.exception()  # seen: that the trainer was closed under it is no news
        raise


def compare(found: WeightDigests, recorded: VersionCreated | StepTrained, trainer: Trainer) -> None:
    """Refuses a version that is not the recorded one.

    Raises:
        DigestMismatch: which of its digests differ, found and recorded, and what in the numeric environment.
    """
    if found == recorded.digests:
        return
    pairs: dict[tuple[str, str], list[str]] = {}
    for part in ("master", "exported", "optimiser"):
        pair = (getattr(found, part), getattr(recorded.digests, part))
        if pair[0] != pair[1]:
            pairs.setdefault(pair, []).append(part)
    differing = "; ".join(
        f"{' and '.join(parts)} {here} here, {there} recorded" for (here, there), parts in pairs.items()
    )
    changed = environment_changes(recorded, trainer)
    raise DigestMismatch(
        f"version {recorded.version} rebuilt is not the recorded one: {differing}. "
        f"Numeric environment: {'; '.join(changed) or 'the same, so the code or a batch changed'}"
    )


def environment_changes(recorded: VersionCreated | StepTrained, trainer: Trainer) -> list[str]:
    """What in the numeric environment of a trainer is not as it was for a version, in words."""
    here = trainer.environment.model_dump(mode="json")
    return [
        f"{key} {value} here, {recorded.environment.get(key)} recorded"
        for key, value in here.items()
        if recorded.environment.get(key) != value
    ]
