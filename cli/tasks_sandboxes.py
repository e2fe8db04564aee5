"""Sandboxes of `stepwell tasks`, of which nothing is left however the command ends."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.sandbox.folders import owner_name, remove_tree, sweep
from workers.lifetime import on_stop_signals
from workers.services.home import Home


@asynccontextmanager
async def sandboxes() -> AsyncGenerator[BubblewrapFactory]:
    """A factory for the current task, which SIGTERM and SIGINT end; first it removes what killed commands left. When it
    ends, so do the loop's threads.

    Raises:
        KeyboardInterrupt: the command was told to stop, and nothing is left.
    """
    root = Home.of(None).root / "sandboxes"
    await asyncio.to_thread(sweep, root)
    working = asyncio.current_task()
    assert working is not None  # A coroutine always runs in one.
    stopped = asyncio.Event()

    def stop() -> None:
        stopped.set()
        working.cancel()

    on_stop_signals(stop)
    factory = BubblewrapFactory(root)
    try:
        yield factory
    except asyncio.CancelledError:
        if stopped.is_set():
            raise KeyboardInterrupt from None
        raise
    finally:
        await factory.close()
        # A thread that prepared the factory may still write there.
        await asyncio.get_running_loop().shutdown_default_executor()
        for folder in root.glob(f"{owner_name()}-*"):
            remove_tree(folder)
