"""Trains recorded steps again, as the trainer worker does, and compares what comes out. Reads the stores alone.

A step starts from the version before it: in memory, where that came out as recorded, else rebuilt from the newest
checkpoint and the recorded batches after it.
"""

import asyncio
import shutil
import time
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from activities.folders import get_folder
from activities.stores import Stores
from activities.trainer_memory import TrainerMemory, environment_changes, in_thread
from activities.weights_record import WeightsRecord
from db.errors import BlobCorrupt, BlobMissing
from stepwell.events import StepTrained
from stepwell.events.numbers import WeightDigests
from stepwell.policy.trainers.protocol import Trainer
from stepwell.policy.weights import load_folder
from stepwell.policy.weights_distance import Tolerance, WeightsDistance, tolerance, weights_distance


class Outcome(StrEnum):
    """What a step that was trained again says of the recorded one."""

    EQUAL = "equal"
    """Every digest is the recorded one."""
    DIFFERENT = "different"
    """Other bits in the same numeric environment: code, a batch or the record changed."""
    WITHIN = "within"
    """Other bits in another numeric environment, within the tolerance."""
    BEYOND = "beyond"
    """Other bits in another numeric environment, farther away than the tolerance."""
    UNMEASURED = "unmeasured"
    """Other bits in another numeric environment, and the recorded weights are not stored: nothing can be said."""

    @property
    def is_good(self) -> bool:
        """Whether the recorded step stands."""
        return self in (Outcome.EQUAL, Outcome.WITHIN)


@dataclass(frozen=True, slots=True)
class Apart:
    """How far what came out is from the recorded weights."""

    distance: WeightsDistance
    """Over the exported weights."""
    tolerance: Tolerance
    """What is allowed in another environment."""


@dataclass(frozen=True, slots=True)
class Retrained:
    """A step that was trained again."""

    step: int
    """Which, from 0; it makes version `step + 1`."""
    loaded: int
    """Version that was loaded, of a checkpoint or version 0."""
    exact: int
    """Newest version on the way, up to `step`, that is the recorded one to the bit."""
    recorded: WeightDigests
    """Digests by the ledger."""
    computed: WeightDigests
    """Digests of what came out."""
    environment: tuple[str, ...]
    """What in the numeric environment is not as recorded, for any step since `exact`; empty where bits are promised."""
    apart: Apart | None
    """None where the digests are equal, or the recorded weights are not stored."""
    seconds: float
    """Wall clock, what came before the step included."""

    @property
    def outcome(self) -> Outcome:
        """What it says."""
        if self.recorded == self.computed:
            return Outcome.EQUAL
        if not self.environment:
            return Outcome.DIFFERENT
        if self.apart is None:
            return Outcome.UNMEASURED
        return Outcome.WITHIN if self.apart.tolerance.holds(self.apart.distance) else Outcome.BEYOND


@dataclass
class _Since:
    """What happened since the last version that is the recorded one to the bit."""

    exact: int
    rates: list[float] = field(default_factory=list[float])
    environment: dict[str, None] = field(default_factory=dict[str, None])


class Retraining:
    """Trains steps of one run again, in ascending order. Not for concurrent use; close it.

    Args:
        stores: With the auditor's role.
        weights: The run's versions.
        cache: A folder of its own.
    """

    def __init__(self, stores: Stores, weights: WeightsRecord, cache: Path) -> None:
        self._stores = stores
        self._weights = weights
        self._cache = cache
        self._memory = TrainerMemory(stores, cache)
        self._damaged: set[int] = set()
        self._trainer: Trainer | None = None
        self._loaded = 0
        self._since = _Since(0)

    async def retrain(self, step: int) -> Retrained:
        """Trains a step again.

        Raises:
            NoVersion: it was not trained.
            DigestMismatch: version 0 or a row of a batch is not the recorded one.
            BlobMissing, BlobCorrupt: version 0 or a batch is not stored.
        """
        began = time.monotonic()
        trained = self._weights.trained(step)
        trainer = await self._reach(step)
        exact = self._since.exact
        await self._fold(trainer)
        computed = await in_thread(trainer, trainer.digests)
        environment = tuple(self._since.environment)
        apart = None if computed == trained.digests else await self._measure(trainer, trained)
        self._remember(trainer, trained, computed)
        return Retrained(
            step=step,
            loaded=self._loaded,
            exact=exact,
            recorded=trained.digests,
            computed=computed,
            environment=environment,
            apart=apart,
            seconds=time.monotonic() - began,
        )

    async def close(self) -> None:
        """Ends what the trainer started."""
        await self._memory.drop()

    async def _reach(self, version: int) -> Trainer:
        """A trainer at a version, as exact as it can be had."""
        whole = self._weights.checkpoints().keys() - self._damaged
        newest = max((saved for saved in whole if saved <= version), default=0)
        trainer = self._trainer
        if trainer is None or trainer.version > version or self._since.exact < newest:
            trainer = self._trainer = await self._memory.begin(self._weights, version, self._damaged, saving=False)
            self._loaded = trainer.version
            self._since = _Since(trainer.version)
        while trainer.version < version:
            trained = self._weights.trained(trainer.version)
            await self._fold(trainer)
            self._remember(trainer, trained, await in_thread(trainer, trainer.digests))
        return trainer

    async def _fold(self, trainer: Trainer) -> None:
        changes = environment_changes(self._weights.trained(trainer.version), trainer)
        result = await self._memory.fold(self._weights, trainer)
        self._since.rates.append(result.learning_rate)
        self._since.environment |= dict.fromkeys(changes)

    def _remember(self, trainer: Trainer, trained: StepTrained, computed: WeightDigests) -> None:
        if computed == trained.digests:
            self._since = _Since(trainer.version)

    async def _measure(self, trainer: Trainer, trained: StepTrained) -> Apart | None:
        """The distance to the recorded weights; None where they are not stored."""
        try:
            recorded = await get_folder(self._stores.blobs, trained.export, self._cache)
        except (BlobMissing, BlobCorrupt):
            return None
        folder = self._memory.scratch("export")
        try:
            await in_thread(trainer, trainer.export, folder)
            ours, theirs = await asyncio.to_thread(load_folder, folder), await asyncio.to_thread(load_folder, recorded)
            distance = await asyncio.to_thread(weights_distance, ours, theirs)
            return Apart(distance, await asyncio.to_thread(tolerance, self._since.rates, ours))
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            if trained.export != self._weights.created().export:  # version 0 stays: the trainer exports with its files
                await asyncio.to_thread(shutil.rmtree, recorded, ignore_errors=True)
