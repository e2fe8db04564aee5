"""Records the Temporal histories of a finished run for the replay test.

    python -m tests.histories.record RUN        with STEPWELL_HOME as the run had it

One file a workflow run: `TrainingRun` with each of its continuations, one prompt group, one validation and one of its
shards; of a run set `RunSet` with each of its continuations, and each `Trial`. Record again after a change of the
workflows that is meant to take over no running run.
"""

import asyncio
import sys
from pathlib import Path

from workers.runtime import connect
from workers.services.addresses import resolve
from workers.services.lifecycle import held

FOLDER = Path(__file__).parent
WHOLE = ("TrainingRun", "RunSet", "Trial")
"""Of these all are recorded."""


async def record(run: str) -> None:
    """Writes the histories of a run, or of a run set."""
    client = await connect(resolve(), identity="history recorder")
    taken: dict[str, int] = {}
    ours = " OR ".join(f"WorkflowId STARTS_WITH '{prefix}/{run}'" for prefix in ("stepwell", "stepwell-ptb"))
    async for execution in client.list_workflows(ours):
        kind = execution.workflow_type + ("Shard" if "/prompt/v" in execution.id else "")
        if kind not in WHOLE and taken.get(kind):
            continue
        number = taken[kind] = taken.get(kind, 0) + 1
        history = await client.get_workflow_handle(execution.id, run_id=execution.run_id).fetch_history()
        (FOLDER / f"{kind}-{number}.json").write_text(history.to_json())


if __name__ == "__main__":
    with held():
        asyncio.run(record(sys.argv[1]))
