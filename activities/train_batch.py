"""From a recorded manifest to the rows that it names."""

import asyncio
from collections.abc import Mapping, Sequence

from activities.stores import Stores
from stepwell.agent.turn import TurnPayload
from stepwell.events import RolloutEnded, TurnRecorded
from stepwell.policy.trainers.protocol import TrainBatch
from stepwell.rl.batching import BatchManifest
from stepwell.rl.rows import train_rows
from stepwell.rl.samples import TrainSample


async def read_batch(stores: Stores, manifest: str) -> TrainBatch:
    """The batch of a manifest's blob, out of the ledger and the store; the trainer checks each row's digest."""
    batch = BatchManifest.model_validate_json(await stores.blobs.get(manifest))
    streams = await stores.ledger.read_many([sample.stream for sample in batch.samples])
    turns: list[list[TurnRecorded]] = []
    for sample in batch.samples:
        events = [recorded.event for recorded in streams.get(sample.stream, [])]
        ended = next((event for event in events if isinstance(event, RolloutEnded)), None)
        epoch = None if ended is None else ended.epoch
        turns.append([event for event in events if isinstance(event, TurnRecorded) and event.epoch == epoch])
    blobs = await stores.blobs.get_many({turn.payload for of_rollout in turns for turn in of_rollout})
    # A batch of a thousand long rollouts is half a gigabyte of JSON: beside the event loop, which has beats to send.
    return await asyncio.to_thread(_read_rows, batch, turns, blobs)


def _read_rows(batch: BatchManifest, turns: Sequence[Sequence[TurnRecorded]], blobs: Mapping[str, bytes]) -> TrainBatch:
    rows: list[TrainSample | None] = []
    for sample, of_rollout in zip(batch.samples, turns, strict=True):
        payloads = [TurnPayload.model_validate_json(blobs[turn.payload]) for turn in of_rollout]
        rows += train_rows(payloads) if sample.content else [None]
    return TrainBatch(manifest=batch, samples=tuple(rows))
