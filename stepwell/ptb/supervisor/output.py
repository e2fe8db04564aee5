"""What the agent writes: read as it comes, written down, and read for use and limits."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from typing import IO

from stepwell.ptb.supervisor.host_folder import HostFolder
from stepwell.ptb.supervisor.meter import Meter
from stepwell.ptb.supervisor.order import Stream
from stepwell.ptb.supervisor.trace import JsonLines, LineSplitter, trace_record, utc_now

READ_BYTES = 1 << 16
DRAINED_BYTES = 4 << 20
"""At most so much is read at once of what already lies in a pipe: no pipe holds more."""


class AgentOutput:
    """Both streams of an agent's commands.

    Args:
        folder: Receives the trace and what was read of use.
        meter: Reads every line.
        on_told: Called when a line told of use or limits.
        on_failure: Called if a line cannot be written down; nothing is read any more then.
    """

    def __init__(
        self,
        folder: HostFolder,
        meter: Meter,
        on_told: Callable[[], None],
        on_failure: Callable[[OSError], None],
    ) -> None:
        self._meter = meter
        self._on_told = on_told
        self._on_failure = on_failure
        self._trace = JsonLines(folder.trace)
        self._usage = JsonLines(folder.usage)
        self._pipes: dict[int, tuple[Stream, LineSplitter]] = {}
        self.last_line: datetime | None = None
        """When the last line was read."""

    def attach(self, pipe: IO[bytes], stream: Stream) -> None:
        """Reads a pipe from now on, in the running loop."""
        descriptor = pipe.fileno()
        os.set_blocking(descriptor, False)
        self._pipes[descriptor] = (stream, LineSplitter())
        asyncio.get_running_loop().add_reader(descriptor, self._read, descriptor)

    def drain(self) -> None:
        """Reads what has been written until now."""
        for descriptor in list(self._pipes):
            for _ in range(DRAINED_BYTES // READ_BYTES):
                if not self._read(descriptor):
                    break

    def finish(self) -> None:
        """Reads to the end: there is one, since nobody inside is left. Frees the files.

        Raises:
            OSError: the disk is full, or failed.
        """
        for descriptor, (stream, lines) in list(self._pipes.items()):
            while self._read(descriptor):
                pass
            self._take(stream, lines.finish())
            self._detach(descriptor)
        self._trace.close()
        self._usage.close()

    def _read(self, descriptor: int) -> bool:
        """Reads once; whether there was anything."""
        if descriptor not in self._pipes:
            return False
        stream, lines = self._pipes[descriptor]
        try:
            chunk = os.read(descriptor, READ_BYTES)
        except BlockingIOError:
            return False
        if not chunk:
            asyncio.get_running_loop().remove_reader(descriptor)
            return False
        try:
            self._take(stream, lines.feed(chunk))
        except OSError as error:
            self._detach(descriptor)
            self._on_failure(error)
            return False
        return True

    def _detach(self, descriptor: int) -> None:
        asyncio.get_running_loop().remove_reader(descriptor)
        self._pipes.pop(descriptor, None)

    def _take(self, stream: Stream, lines: list[tuple[bytes, bool]]) -> None:
        if not lines:
            return
        when = self.last_line = utc_now()
        self._trace.write(*(trace_record(when, stream, line, part) for line, part in lines))
        before = len(self._meter.limits)
        told = [self._meter.read(line.decode("utf-8", "replace"), when) for line, _ in lines]
        if any(told):
            limits = [limit.model_dump(mode="json") for limit in self._meter.limits[before:]]
            used = asdict(self._meter.used())
            self._usage.write({"time": when.isoformat(timespec="milliseconds"), **used, "limits": limits})
            self._on_told()
