"""Steering a run as the command line and the Temporal UI do: by Updates of its workflow."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest_asyncio
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.service import RPCError, RPCStatusCode

from stepwell.contracts.operators import OperatorNote
from stepwell.contracts.run import Progress
from tests.stack.tiny_run import TinyRun
from workers.runtime import connect
from workers.services.addresses import Addresses
from workflows.ids import run_id

TIMEOUT_S = 300.0
WHO = "ada@console"
NOT_YET = (RPCStatusCode.NOT_FOUND, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.FAILED_PRECONDITION)
"""What the server answers about a run that has not begun, or whose control worker has not polled yet."""


def stepwell(home: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """One command of a user."""
    return subprocess.run(
        [sys.executable, "-m", "cli.main", *arguments],
        env={**os.environ, "STEPWELL_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )


@dataclass
class Helm:
    """An operator's client."""

    client: Client

    async def ask(self, run: str, action: str, note: OperatorNote) -> Progress:
        """Sends an Update that must be accepted."""
        return await self._handle(run).execute_update(action, note, result_type=Progress)

    async def refusal(self, run: str, action: str, note: OperatorNote) -> str:
        """Sends an Update that must be refused; the reason."""
        try:
            await self.ask(run, action, note)
        except WorkflowUpdateFailedError as error:
            return str(error.cause)
        raise AssertionError(f"{action} {note} was accepted")

    async def progress(self, run: str) -> Progress:
        """What the run does now."""
        return await self._handle(run).query("progress", result_type=Progress)

    async def until(self, run: TinyRun | str, happened: Callable[[Progress], bool]) -> Progress:
        """Waits until the progress of a run is so, also of one that is about to begin; of a process, while it lives."""
        deadline = time.monotonic() + TIMEOUT_S
        progress: Progress | None = None
        while time.monotonic() < deadline:
            try:
                progress = await self.progress(run if isinstance(run, str) else run.name)
            except RPCError as error:
                if error.status not in NOT_YET:
                    raise
            if progress is not None and happened(progress):
                return progress
            if isinstance(run, TinyRun):
                assert run.process is not None
                assert run.process.poll() is None, f"{progress}\n{run.output}"
            await asyncio.sleep(0.2)
        raise AssertionError(f"{run} stands at {progress}")

    def _handle(self, run: str):  # pyright: ignore[reportUnknownParameterType]  # a generic handle
        return self.client.get_workflow_handle(run_id(run))


@pytest_asyncio.fixture(loop_scope="session")
async def helm(services: Addresses) -> AsyncIterator[Helm]:
    """An operator at the console."""
    yield Helm(await connect(services, identity=WHO))
