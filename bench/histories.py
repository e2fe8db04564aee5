"""How long Temporal's histories grow at 64 prompts of 16 rollouts a step, against their bounds.

    python bench/histories.py [STEPS]

A real run of the micro policy, two steps long unless told otherwise, in services of its own. Each workflow's longest
history is printed with its share of the bound: 5,000 events and 5 MB.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from workers.runtime import connect
from workers.services.addresses import Addresses
from workers.services.lifecycle import held

RECIPE = Path(__file__).parents[1] / "recipes" / "micro.toml"
EVENTS, BYTES = 5_000, 5 * 1024 * 1024
RUN = "histories"


async def measure(addresses: Addresses) -> None:
    """Prints the longest history of each kind of workflow."""
    client = await connect(addresses, identity="bench")
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    async for execution in client.list_workflows(f"WorkflowId STARTS_WITH 'stepwell/{RUN}'"):
        info = (
            await client.get_workflow_handle(execution.id, run_id=execution.run_id).describe()
        ).raw_description.workflow_execution_info
        kind = execution.workflow_type + (" (16 tasks of a validation)" if "/prompt/v" in execution.id else "")
        found[kind].append((info.history_length, info.history_size_bytes))
    for kind, sizes in sorted(found.items()):
        events, size = max(events for events, _ in sizes), max(size for _, size in sizes)
        print(
            f"{kind:40} {len(sizes):4} histories, longest {events:5,} events ({events / EVENTS:.2f} of the bound), "
            f"largest {size / 1024:7,.0f} KiB ({size / BYTES:.2f})"
        )


def main() -> int:
    """Runs and measures."""
    steps = sys.argv[1] if len(sys.argv) > 1 else "2"
    with tempfile.TemporaryDirectory(prefix="stepwell-bench-") as home:
        settings = [f"run.max_steps={steps}", "run.prompts_per_step=64", "validation.tasks=32"]
        settings += ["validation.heldout_tasks=0", "validation.confirm_tasks=0", "validation.initial=false"]
        settings += ["validation.target=0.99"]
        with held(Path(home)) as addresses:
            command = [sys.executable, "-m", "cli.main", "run", str(RECIPE), "--name", RUN]
            command += [part for setting in settings for part in ("--set", setting)]
            subprocess.run(command, check=True, env={**os.environ, "STEPWELL_HOME": home})
            asyncio.run(measure(addresses))
    return 0


if __name__ == "__main__":
    sys.exit(main())
