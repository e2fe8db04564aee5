"""What it costs to replay a step of 64 prompts with 16 rollouts of four turns each, against reading it alone.

    python bench/replay.py [PROMPTS]

Writes the step with the workers' own appends into services of its own, then replays it three times, each out of the
stores. Printed is the cheapest, by part, its share of the two seconds that it may take, and the ratio to the bare read
of the same rows and blobs.
"""

import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path

from sqlalchemy import text

from db.blobs import BlobStore, blob_digest
from db.database import Database
from db.ledger import Ledger
from db.migrate import bring_up
from db.objects import ObjectStore
from db.step_record import RunSteps
from stepwell.agent.protocol import Action, StopReason
from stepwell.agent.turn import TurnPayload
from stepwell.audit.replaying.batch import batch_of, group_closed
from stepwell.audit.replaying.difference import Difference
from stepwell.audit.replaying.replay import replay
from stepwell.audit.replaying.rows import row_differences
from stepwell.events import (
    AttemptOpened,
    GroupOpened,
    RolloutEnded,
    RolloutGraded,
    RunCreated,
    StepDispatched,
    TurnRecorded,
)
from stepwell.events.base import Event
from stepwell.events.streams import prompt_stream, rollout_stream, run_stream
from stepwell.rl.admission import step_admitted
from stepwell.rl.rows import train_sample
from workers.services.addresses import Addresses
from workers.services.lifecycle import held

RUN, SAMPLES, TURNS = "replayed", 16, 4
MAY_TAKE_S = 2.0
DIGEST = "0" * 64
TIMES = 3


def turn_of(dice: random.Random) -> TurnPayload:
    """A turn of the usual size: 40 tokens of context, 12 generated."""
    return TurnPayload(
        delta_ids=tuple(dice.randrange(700) for _ in range(40)),
        token_ids=tuple(dice.randrange(700) for _ in range(12)),
        logprobs=tuple(-dice.uniform(0.1, 3.0) for _ in range(12)),
        finish_reason="stop",
        action=Action(tool="edit", arguments={"path": "a.py", "text": "x" * 40}),
        observation="1 passed, 1 failed",
        finished=False,
    )


async def write_rollout(ledger: Ledger, prompt: int, sample: int) -> None:
    """A rollout of four turns, in one append."""
    dice = random.Random(f"{prompt}/{sample}")
    stream, turns = rollout_stream(RUN, "0", prompt, sample), [turn_of(dice) for _ in range(TURNS)]
    events: list[Event] = [AttemptOpened(attempt="a", worker="host/1", resumed_at=0)]
    blobs = [turn.blob() for turn in turns] + [b"{}"]
    row = train_sample(turns)
    for number, blob in enumerate(blobs[:-1]):
        events.append(
            TurnRecorded(
                turn=number,
                epoch=0,
                payload=blob_digest(blob),
                version=0,
                prompt_tokens=120,
                generated_tokens=12,
                tool="edit",
                tree=DIGEST,
                engine="engine-1",
                generate_s=0.1,
                tool_s=0.01,
            )
        )
    events.append(
        RolloutEnded(
            reason=StopReason.FINISHED,
            epoch=0,
            turns=TURNS,
            generated_tokens=sum(row.generated),
            total_tokens=len(row.token_ids),
            content=row.content_digest(),
            changed=blob_digest(blobs[-1]),
            tree=DIGEST,
            verdict_key="k",
        )
    )
    score = float(dice.random() < 0.5)
    events.append(RolloutGraded(verdict_key="k", score=score, timed_out=False, verdict_head="h", reused=False))
    await ledger.append(stream, events, expected_seq=0, actor="sandbox:bench/1", blobs=blobs)


async def write_step(ledger: Ledger, blobs: BlobStore, prompts: int) -> None:
    """One admitted step."""
    sections = {"max_steps": 1, "prompts_per_step": prompts, "samples_per_prompt": SAMPLES, "mismatch_bound": 1e-3}
    created = RunCreated(recipe={"run": sections}, recipe_digest=DIGEST, task_set=DIGEST)
    dispatched = StepDispatched(step=0, version=0, tasks=[DIGEST] * prompts, settings={})
    await ledger.append(run_stream(RUN), [created, dispatched], expected_seq=0, actor="control:bench/1")
    for prompt in range(prompts):
        await asyncio.gather(*(write_rollout(ledger, prompt, sample) for sample in range(SAMPLES)))
        opened = GroupOpened(task=DIGEST, task_id="t", version=0, samples=SAMPLES)
        await ledger.append(prompt_stream(RUN, "0", prompt), [opened], expected_seq=0, actor="control:bench/1")
    for group in (await (await steps_of_run(ledger, blobs)).read(0)).groups:
        await ledger.append(group.stream, [group_closed(group)], expected_seq=1, actor="control:bench/1")
    steps = await steps_of_run(ledger, blobs)
    record = await steps.read(0)
    batch = batch_of(record, steps.recipe)
    await blobs.put(batch.canonical_bytes())
    admitted = step_admitted(batch, [group.child for group in record.groups if group.child is not None])
    await ledger.append(run_stream(RUN), [admitted], expected_seq=2, actor="control:bench/1")


async def steps_of_run(ledger: Ledger, blobs: BlobStore) -> RunSteps:
    """The run's steps, as they stand."""
    steps = await RunSteps.open(ledger, blobs, RUN)
    assert steps is not None
    return steps


async def bare_read(database: Database) -> None:
    """The rows and blobs that a replay needs, without looking at them."""
    for kind in ("prompt", "rollout"):
        await database.rows(text("SELECT exact FROM events WHERE stream LIKE :like"), {"like": f"{kind}/{RUN}/0/%"})
    await database.rows(text("SELECT data FROM blobs"), {})


async def replay_once(ledger: Ledger, blobs: BlobStore) -> dict[str, float]:
    """Replays the step; seconds by part."""
    took: dict[str, float] = {}
    began = time.perf_counter()

    def lap(part: str) -> None:
        nonlocal began
        took[part] = took.get(part, 0.0) + time.perf_counter() - began
        began = time.perf_counter()

    steps = await steps_of_run(ledger, blobs)
    record = await steps.read(0)
    lap("read and parse events")
    rows: list[Difference] = []
    for group in record.groups:
        payloads = await steps.payloads(group)
        lap("read turns")
        rows += row_differences(0, group, payloads)
        lap("rows of tokens")
    found = replay(record, steps.recipe, rows)
    lap("groups, admission, batch")
    assert found.is_equal, found.differences[0]
    return took


async def measure(addresses: Addresses, prompts: int) -> None:
    """Writes the step, replays it, and prints."""
    database, objects = Database(addresses.appender), ObjectStore(addresses.bucket)
    blobs = BlobStore(database, objects)
    ledger = Ledger(database, blobs)
    try:
        await write_step(ledger, blobs, prompts)
        bare: list[float] = []
        replays: list[dict[str, float]] = []
        for _ in range(TIMES):
            began = time.perf_counter()
            await bare_read(database)
            bare.append(time.perf_counter() - began)
            replays.append(await replay_once(ledger, blobs))
    finally:
        await objects.close()
        await database.close()
    best = min(replays, key=lambda took: sum(took.values()))
    whole = sum(best.values())
    print(
        f"{prompts * SAMPLES:,} rollouts of {TURNS} turns: {whole:.2f} s, {whole / MAY_TAKE_S:.2f} of what it may take"
    )
    for part, seconds in best.items():
        print(f"    {part:26} {seconds:.2f} s, {seconds / whole:.0%}")
    print(f"ratio to the bare read of the same bytes ({min(bare):.2f} s): {whole / min(bare):.1f}")


def main() -> int:
    """Runs the comparison."""
    prompts = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    with tempfile.TemporaryDirectory(prefix="stepwell-bench-") as home, held(Path(home)) as addresses:
        bring_up(addresses.migrator, addresses.appender)
        asyncio.run(measure(addresses, prompts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
