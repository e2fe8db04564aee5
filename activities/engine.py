"""load_weights: an engine loads a version, proves what it serves, and only then takes traffic for it."""

import asyncio
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

from temporalio import activity

from activities.folders import get_folder
from activities.stores import Stores
from db.recorded import Recorded
from stepwell.contracts.engine import Attestation, LoadRequest
from stepwell.events import StepTrained, VersionAttested, VersionCreated
from stepwell.events.streams import engine_stream
from stepwell.policy.engine_http.service import EngineService
from stepwell.policy.protocol import EngineError
from stepwell.policy.weights import DigestMismatch, load_folder, weights_digest


class ProbeMismatch(RuntimeError):
    """The engine answers the probe unlike the trainer: it read the right bytes and serves something else."""


@dataclass
class EngineActivities:
    """Loads versions into this process's engine."""

    stores: Stores
    service: EngineService
    engine_id: str
    cache: Path
    first: str
    """Manifest of the folder that the engine was started with, which it may read again."""
    loads: int = 0
    """Attestations begun, loaded for or not."""
    version: int | None = None
    """Weight version that this engine has attested and holds; None while it holds what it has not attested."""
    _shut: bool = False
    """Whether the gate is closed because what is loaded was not attested."""
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    @activity.defn(name="load_weights")
    async def load_weights(self, request: LoadRequest) -> Attestation:
        """Loads and attests a version; returns the proof. While it loads the engine takes no request.

        Raises:
            DigestMismatch: the tensors that arrived are not those recorded.
            ProbeMismatch: the engine's log-probabilities of the probe differ from the trainer's.
        """
        # Loading goes on when the attempt is given up: half a load would leave nothing to serve.
        return await asyncio.shield(self.serve(request.run, request.version))

    async def serve(self, run: str, version: int) -> Attestation:
        """What `load_weights` does; called without an activity when the engine starts, comes back or is late. A version
        that the engine holds already is proven again, not loaded."""
        async with self._one_at_a_time:
            began = time.monotonic()
            made, probe_ids = _find(await self.stores.weights(run), version)
            if self.version != version:
                await self._load(version, made)
            try:
                difference = await self._prove(run, version, made.probe, probe_ids)
            except ProbeMismatch:
                self.shut()
                self.version = None
                raise
            attested = VersionAttested(
                version=version,
                digest=made.digests.exported,
                probe_difference=difference,
                load=self.loads,
                load_s=time.monotonic() - began,
            )
            self.loads += 1  # first: an append whose answer is lost may stand
            await self.stores.append_next(engine_stream(run, self.engine_id), attested)
            self.version = version
            self._open()  # only now: whatever failed above leaves the engine without traffic
            self._forget_but({made.export, self.first})
            return Attestation(
                engine=self.engine_id, version=version, digest=made.digests.exported, probe_difference=difference
            )

    @property
    def busy(self) -> bool:
        """Whether a version is being loaded or proven."""
        return self._one_at_a_time.locked()

    def shut(self) -> None:
        """Takes no traffic from here on, until a version is attested."""
        if not self._shut:
            self._shut = True
            self.service.close_gate()

    async def _load(self, version: int, made: VersionCreated | StepTrained) -> None:
        """Fetches, checks and loads a version behind the closed gate."""
        folder = await get_folder(self.stores.blobs, made.export, self.cache)
        digest = await asyncio.to_thread(lambda: weights_digest(load_folder(folder)))
        if digest != made.digests.exported:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)  # to be fetched anew
            raise DigestMismatch(
                f"version {version} arrived with the digest {digest}, recorded is {made.digests.exported}"
            )
        held, was_shut = self.version, self._shut
        self.shut()
        self.version = None
        try:
            await self.service.load(version, folder)
        except EngineError:
            self.version = held  # the engine is as it was
            if held is not None and not was_shut:
                self._open()
            raise

    async def _prove(self, run: str, version: int, recorded: list[float], probe_ids: list[int]) -> float:
        """Largest difference from the trainer's log-probabilities over the probe, in nats.

        Raises:
            ProbeMismatch: it is too large.
        """
        served = await self.service.engine.score(tuple(probe_ids))
        difference = max(abs(ours - theirs) for ours, theirs in zip(served, recorded, strict=True))
        bound = await self._probe_bound(run)
        if difference > bound:
            raise ProbeMismatch(
                f"version {version}: the engine's log-probabilities of the probe differ by {difference:.2e} "
                f"from the trainer's, allowed are {bound:.0e}: it serves other weights than it loaded"
            )
        return difference

    def _open(self) -> None:
        if self._shut:
            self._shut = False
            self.service.open_gate()

    def _forget_but(self, kept: set[str]) -> None:
        """Removes the folders of versions that are served no more."""
        for folder in self.cache.iterdir():
            if folder.name not in kept:
                shutil.rmtree(folder, ignore_errors=True)

    async def _probe_bound(self, run: str) -> float:
        """Ten times the bound on the mean mismatch of a step: this is a maximum."""
        return 10 * (await self.stores.run_facts(run)).recipe.run.mismatch_bound


def _find(weights: list[Recorded], version: int) -> tuple[VersionCreated | StepTrained, list[int]]:
    """The event that made a version, and the probe's tokens.

    Raises:
        LookupError: there is no such version.
    """
    events = [recorded.event for recorded in weights]
    created = next((event for event in events if isinstance(event, VersionCreated)), None)
    for event in events:
        if isinstance(event, VersionCreated | StepTrained) and event.version == version and created is not None:
            return event, created.probe_ids
    raise LookupError(f"there is no weight version {version} to load")
