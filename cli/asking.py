"""Asking a run's workflow what it does, and finding out why it does not answer: silence is never shown as such."""

import asyncio
import time
from dataclasses import dataclass
from datetime import timedelta

from temporalio.client import Client, WorkflowQueryFailedError, WorkflowQueryRejectedError
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.service import RPCError, RPCStatusCode

from cli.reading import Reader
from stepwell.contracts.run import Progress
from workers.services.addresses import Addresses
from workflows.ids import run_id

_ANSWER = timedelta(seconds=2)
"""Longest wait for an answer: without a control worker there is none."""
_ASK_S = 2.0
"""Between two questions."""
_START_S = 15.0
"""For so long a workflow may be silent when somebody begins to ask: its worker may be about to come."""
_PATIENCE_S = 6.0
"""For so long it may be silent later."""


@dataclass(frozen=True)
class Word:
    """What a run's workflow said."""

    progress: Progress | None = None
    """Its answer, None if there is none."""
    silence: str = ""
    """Why there is none, in words, with what to do."""


class Asked:
    """What a run's workflow said last, asked beside a view, which does not wait for it.

    Args:
        reader: Knows which workers are alive.
        addresses: Of the services.
        run: Its name.
    """

    def __init__(self, reader: Reader, addresses: Addresses, run: str) -> None:
        self.word = Word()
        self._reader = reader
        self._addresses = addresses
        self._run = run

    async def keep_asking(self) -> None:
        """Asks until it is cancelled."""
        client = await asking_client(self._addresses)
        silent_since, patience_s = time.monotonic(), _START_S
        while True:
            word = await ask(self._reader, client, self._run)
            if word.progress is not None:
                silent_since, patience_s = time.monotonic(), _PATIENCE_S
            elif time.monotonic() - silent_since < patience_s:
                word = Word(None, self.word.silence)
            self.word = word
            await asyncio.sleep(_ASK_S)


async def ask_once(reader: Reader, addresses: Addresses, run: str) -> Word:
    """What a run's workflow says now. Raises as `ask`."""
    return await ask(reader, await asking_client(addresses), run)


async def ask(reader: Reader, client: Client, run: str) -> Word:
    """Asks once; where nobody answers, says who is missing.

    Raises:
        DatabaseUnavailable: no connection.
    """
    try:
        async with asyncio.timeout(2 * _ANSWER.total_seconds()):  # the first question makes the connection too
            handle = client.get_workflow_handle(run_id(run))
            return Word(await handle.query("progress", result_type=Progress, rpc_timeout=_ANSWER))
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            again = f"`stepwell run` with its recipe and `--name {run}` goes on with it"
            return Word(None, f"waiting for a workflow: none is under way for {run}; {again}")
        why = error.message
    except (WorkflowQueryFailedError, WorkflowQueryRejectedError) as error:
        why = str(error)
    except TimeoutError:
        why = "no answer in time"
    except RuntimeError as error:  # the connection could not be made
        return Word(None, f"waiting for Temporal: {error}")
    return Word(None, await _silence(reader, run, why))


async def _silence(reader: Reader, run: str, why: str) -> str:
    """Why nobody answered."""
    alive = await reader.live("control", run)
    if alive:
        who = ", ".join(f"{worker.host}/{worker.pid}" for worker in alive[:3])
        return f"waiting for the run's workflow: it does not answer ({why}), though a control worker is alive ({who})"
    last = await reader.last("control", run)
    seen = "none has been seen" if last is None else f"the last one was {last.worker.host}/{last.worker.pid}"
    return f"waiting for a control worker: none is alive ({seen}); start one: stepwell worker control"


async def asking_client(addresses: Addresses) -> Client:
    """A client that connects when it first asks."""
    return await Client.connect(
        addresses.temporal, namespace=addresses.namespace, data_converter=pydantic_data_converter, lazy=True
    )
