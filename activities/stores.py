"""What activities hold: the ledger, the blobs, and recorded facts that never change and so may be cached."""

import json
from collections import OrderedDict
from dataclasses import dataclass, field

from db.blobs import SMALL_BYTES, BlobStore, blob_digest
from db.errors import Fenced
from db.ledger import Ledger
from db.recorded import Head, Recorded
from stepwell.events import RunCreated, RunForked
from stepwell.events.base import Event
from stepwell.events.streams import run_stream, weights_stream
from stepwell.recipe.loading import resolve
from stepwell.recipe.recipe import Recipe
from stepwell.tasks.manifest import TaskManifest
from stepwell.tasks.task import Task

TASKS_IN_MEMORY = 4096
"""Parsed tasks kept by a worker; a forged one is about 3 KB."""


class NoSuchRun(LookupError):
    """The ledger has no run of this name."""


@dataclass(frozen=True)
class RunFacts:
    """What a run's first events say."""

    recipe: Recipe
    manifest: TaskManifest
    fork: RunForked | None = None
    """What the run goes on from, if it is a fork."""


@dataclass
class Stores:
    """The stores of one worker process. `actor` is `<kind>:<host>/<pid>`."""

    ledger: Ledger
    blobs: BlobStore
    actor: str
    _runs: dict[str, RunFacts] = field(default_factory=dict[str, RunFacts])
    _tasks: "OrderedDict[str, Task]" = field(default_factory=lambda: OrderedDict[str, Task]())

    async def run_facts(self, run: str) -> RunFacts:
        """Recipe and task set of a run.

        Raises:
            NoSuchRun: there is none of this name.
        """
        if run not in self._runs:
            recorded = await self.ledger.read(run_stream(run))
            created = next((each.event for each in recorded if isinstance(each.event, RunCreated)), None)
            if created is None:
                raise NoSuchRun(f"the ledger has no run {run!r}: `stepwell run` creates runs")
            manifest = TaskManifest.model_validate_json(await self.blobs.get(created.task_set))
            fork = next((each.event for each in recorded if isinstance(each.event, RunForked)), None)
            self._runs[run] = RunFacts(resolve(created.recipe, source=f"run {run}"), manifest, fork)
        return self._runs[run]

    async def inherited_weights(self, run: str) -> list[Recorded]:
        """Events of its ancestors' `weights/…` that a fork goes on from, the oldest first; none for other runs."""
        fork = (await self.run_facts(run)).fork
        if fork is None:
            return []
        made_by = fork.versions[-1].made_by
        own = await self.ledger.read(made_by.stream)
        return await self.inherited_weights(fork.parent) + own[: made_by.seq + 1]

    async def weights(self, run: str) -> list[Recorded]:
        """Every event about the weight versions that a run has or goes on from, the oldest first.

        Raises:
            NoSuchRun: there is none of this name.
        """
        return await self.inherited_weights(run) + await self.ledger.read(weights_stream(run))

    async def task(self, digest: str) -> Task:
        """A task by its blob, parsed once."""
        if digest not in self._tasks:
            self._tasks[digest] = Task.model_validate_json(await self.blobs.get(digest))
            if len(self._tasks) > TASKS_IN_MEMORY:
                self._tasks.popitem(last=False)
        self._tasks.move_to_end(digest)
        return self._tasks[digest]

    async def stage(self, data: bytes, inline: list[bytes]) -> str:
        """Digest of a blob that an append is about to name: a small one joins the append, a large one is stored now."""
        if len(data) < SMALL_BYTES:
            inline.append(data)
            return blob_digest(data)
        return (await self.blobs.put(data)).digest

    async def append_next(self, stream: str, event: Event, blobs: tuple[bytes, ...] = ()) -> Head:
        """Appends one event at the end of a stream whose single writer is a workflow with several coroutines.

        What fences here is the event's key: the same fact again is a success, another under its key is refused.

        Raises:
            Fenced: the key stands for other facts.
        """
        for _ in range(APPEND_TRIES):
            head = await self.ledger.head(stream)
            expected = 0 if head is None else head.seq + 1
            try:
                return await self.ledger.append(stream, [event], expected_seq=expected, actor=self.actor, blobs=blobs)
            except Fenced as fenced:
                if fenced.found <= expected:
                    raise
        raise RuntimeError(f"{stream}: other writers were faster {APPEND_TRIES} times; is a second run workflow alive?")


APPEND_TRIES = 20
"""Two coroutines of one workflow collide at most now and then."""


def dump_json(value: object) -> bytes:
    """Stored form of a small JSON blob for people and tools."""
    return json.dumps(value, sort_keys=True, indent=1).encode()
