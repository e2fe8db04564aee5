"""Runs a harness that is a program of its own: bounded in time and output, and never longer alive than this process."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from stepwell.agent.gateway.harness_end import HarnessEnd
from workers.services.plan import launcher_argv

KEPT_BYTES = 64 << 10
"""Of the end of its output."""


async def run_harness(
    argv: Sequence[str], *, environment: Mapping[str, str], folder: Path, stdin: bytes, timeout_s: float
) -> HarnessEnd:
    """See `stepwell.agent.gateway.harness_end.RunHarness`. The harness has a session of its own, which is killed as a
    whole at the end; when this process dies, the harness dies, and what it has started on this machine may not: give it
    tools that act in a sandbox."""
    process = await asyncio.create_subprocess_exec(
        *launcher_argv(list(argv), death_signal=signal.SIGKILL, identity=None),
        env=dict(environment),
        cwd=folder,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    timed_out = False
    kept = bytearray()
    try:
        async with asyncio.timeout(timeout_s):
            await asyncio.gather(_feed(process, stdin), _keep_end(process, kept))
            await process.wait()
    except TimeoutError:
        timed_out = True
    finally:
        # The session's id is the process's, which nobody else has before it is waited for or while members live.
        _kill_session(process.pid)
        returncode = await process.wait()
    return HarnessEnd(returncode, timed_out, kept.decode(errors="replace"))


async def _feed(process: asyncio.subprocess.Process, data: bytes) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError, ConnectionResetError):  # it has ended, or wants nothing
        process.stdin.write(data)
        await process.stdin.drain()
        process.stdin.close()


async def _keep_end(process: asyncio.subprocess.Process, kept: bytearray) -> None:
    assert process.stdout is not None
    while piece := await process.stdout.read(1 << 16):
        kept += piece
        del kept[:-KEPT_BYTES]


def _kill_session(session: int) -> None:
    with suppress(ProcessLookupError):  # all of it has ended
        os.killpg(session, signal.SIGKILL)
