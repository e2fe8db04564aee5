"""Beats from a worker to the process that started it, over an inherited pipe: silence tells a hang from work.

The worker's event loop writes one byte a second. A loop that is blocked, or a process that was stopped, is silent.
"""

import asyncio
import os

from workers.watchdog import Watchdog

EVERY_S = 1.0
_READ_BYTES = 4096


async def beat(descriptor: int | None, watchdog: Watchdog) -> None:
    """Beats until cancelled; a pipe that nobody empties, or that was closed, costs nothing.

    Args:
        descriptor: the pipe's writing end, which no child of this process inherits from here on; None: there is none.
        watchdog: hears every beat.
    """
    if descriptor is not None:
        os.set_inheritable(descriptor, False)
        os.set_blocking(descriptor, False)
    while True:
        watchdog.turned()
        if descriptor is not None:
            try:
                os.write(descriptor, b".")
            except BlockingIOError:
                pass  # the other side is busy: it finds what is there when it looks
            except BrokenPipeError:
                descriptor = None  # the other side is gone, and this process is about to end with it
        await asyncio.sleep(EVERY_S)


class Pulse:
    """The reading end: for how long the worker was silent while somebody listened."""

    _LONGEST_LOOK_S = 1.0
    """Time between two looks counts up to this: a listener that was held up itself accuses nobody."""

    def __init__(self) -> None:
        self._reading, self.writing = os.pipe()
        os.set_blocking(self._reading, False)
        self._looked_at: float | None = None
        self.silent_s = 0.0
        """Seconds since the last beat, or since the start."""
        self.begun = False
        """Whether there was a beat at all."""

    def started(self) -> None:
        """The worker has its end: ours is closed, so that the pipe ends with the worker."""
        os.close(self.writing)

    def look(self, now: float) -> None:
        """Takes what came since the last look.

        Args:
            now: monotonic clock, in seconds.
        """
        if self._heard():
            self.silent_s, self.begun = 0.0, True
        elif self._looked_at is not None:
            self.silent_s += min(now - self._looked_at, self._LONGEST_LOOK_S)
        self._looked_at = now

    def close(self) -> None:
        """Nobody listens any more."""
        os.close(self._reading)

    def _heard(self) -> bool:
        try:
            return bool(os.read(self._reading, _READ_BYTES))
        except BlockingIOError:
            return False
