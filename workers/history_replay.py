"""Archived histories replayed against today's workflows: would they decide the same again?"""

from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

from db.blobs import BlobStore
from db.errors import BlobCorrupt, BlobMissing
from stepwell.events import HistoryArchived
from workers.history_archive import UnreadableHistory, unpack
from workflows.ids import run_id
from workflows.registered import WORKFLOWS


@dataclass(frozen=True, slots=True)
class HistoryReplay:
    """What became of one archived history."""

    archived: HistoryArchived
    """Which."""
    failure: str
    """Why it cannot be replayed; empty where it can."""


async def replay_histories(
    blobs: BlobStore, archived: Sequence[HistoryArchived], workflows: Sequence[type] = WORKFLOWS
) -> AsyncIterator[HistoryReplay]:
    """Replays histories one after the other, in their order but for those that cannot be read, which come last.

    Args:
        blobs: Where they lie.
        archived: Which.
        workflows: What is to decide as the histories say.

    Raises:
        DatabaseUnavailable, BlobStoreUnavailable: no answer.
    """
    replayer = Replayer(
        workflows=list(workflows),
        workflow_runner=UnsandboxedWorkflowRunner(),
        data_converter=pydantic_data_converter,
        debug_mode=True,  # else a workflow that a slow machine leaves waiting for 2 s counts as one that hangs
    )
    under_way: deque[HistoryArchived] = deque()
    unreadable: list[HistoryReplay] = []

    async def stored() -> AsyncIterator[WorkflowHistory]:
        for each in archived:
            try:
                history = unpack(each, await blobs.get(each.history))
            except (BlobMissing, BlobCorrupt, UnreadableHistory) as error:
                unreadable.append(HistoryReplay(each, str(error)))
                continue
            under_way.append(each)
            yield history

    async with replayer.workflow_replay_iterator(stored()) as results:
        async for result in results:
            failure = "" if result.replay_failure is None else _why(result.replay_failure)
            yield HistoryReplay(under_way.popleft(), failure)
    for each in unreadable:
        yield each


def is_whole(run: str, archived: Sequence[HistoryArchived]) -> bool:
    """Whether the run's own workflow is archived to its end: the last that closes."""
    return any(each.workflow == run_id(run) and each.status != "continued_as_new" for each in archived)


def _why(failure: BaseException) -> str:
    """A failure in one line."""
    return " ".join(f"{type(failure).__name__}: {failure}".split())
