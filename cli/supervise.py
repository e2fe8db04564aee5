"""The workers that `stepwell run` starts for a run on this machine."""

import asyncio
import fcntl
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from stepwell.recipe.recipe import Recipe
from workers.launch import WorkerSet, WorkerSpec
from workers.services.home import Home


def worker_specs(run: str, recipe: Recipe) -> list[WorkerSpec]:
    """The workers that a recipe asks for."""
    concurrency = str(recipe.sandbox.concurrency)
    return [
        WorkerSpec("control", ("control", "--take-over")),
        WorkerSpec("trainer", ("trainer",)),
        *(WorkerSpec(f"engine-{index}", ("engine", "--run", run)) for index in range(recipe.engines)),
        *(
            WorkerSpec(f"sandbox-{index}", ("sandbox", "--concurrency", concurrency))
            for index in range(recipe.sandbox_workers)
        ),
    ]


@asynccontextmanager
async def supervised(run: str, recipe: Recipe, tell: Callable[[str], None]) -> AsyncGenerator[None]:
    """Keeps the run's workers alive for the block, and stops them after it. If another process on this machine does so
    already, it is left to it.

    Raises:
        WorkerFailed: a worker dies again and again; the block is cancelled.
    """
    folder = Home.of(None).root / "runs" / run
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell(f"another process on this machine runs the workers of {run}; this one only shows it")
            yield
            return
        workers = WorkerSet(folder / "logs", tell)
        workers.start(worker_specs(run, recipe))
        try:
            async with asyncio.TaskGroup() as tasks:
                watching = tasks.create_task(workers.watch())
                yield
                watching.cancel()
        except* Exception as errors:
            raise errors.exceptions[0] from None
        finally:
            await workers.stop()
