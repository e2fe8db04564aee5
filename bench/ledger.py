"""What an append, a blob and a projection cost, against bare inserts by psycopg.

    python -m bench.ledger [--events 1000]

Uses the services of the environment or the home, under a run name of its own. Prints wall clock and this process's
processor time by operation, and the ratio to the bare insert above it.
"""

import argparse
import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import psycopg

from db.blobs import BlobStore
from db.database import Database, driver_url
from db.ledger import Ledger
from db.objects import ObjectStore
from db.projections.projector import Projector
from stepwell.events import TurnRecorded
from stepwell.events.envelope import GENESIS, hash_of, seal
from workers.services.addresses import Addresses, resolve

BARE = "INSERT INTO bench_bare (stream, seq, key, type, hash, exact) VALUES (%s, %s, %s, %s, %s, %s)"
"""The same row into a table with the same two unique indices."""
BARE_TABLE = (
    "DROP TABLE IF EXISTS bench_bare; CREATE TABLE bench_bare ("
    "position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, stream text, seq bigint, key text, type text, "
    "hash text, exact bytea, UNIQUE (stream, seq), UNIQUE (stream, key))"
)


class Cost(NamedTuple):
    """Of one operation, in milliseconds."""

    wall_ms: float
    processor_ms: float


def turn(number: int) -> TurnRecorded:
    """An event of the usual size."""
    return TurnRecorded(
        turn=number,
        epoch=0,
        payload="0" * 64,
        version=7,
        prompt_tokens=120,
        generated_tokens=12,
        tool="edit",
        tree="0" * 64,
        engine="engine-host-1234",
        generate_s=0.123456,
        tool_s=0.012345,
    )


async def measure(name: str, count: int, operation: Callable[[int], Awaitable[object]], bare: Cost | None) -> Cost:
    """Runs an operation one after the other, after a warm-up, and prints what one costs."""
    warm_up = max(10, count // 20)
    for number in range(warm_up):
        await operation(number)
    wall, processor = time.perf_counter(), time.process_time()
    for number in range(warm_up, warm_up + count):
        await operation(number)
    cost = Cost((time.perf_counter() - wall) / count * 1e3, (time.process_time() - processor) / count * 1e3)
    ratio = f"{cost.wall_ms / bare.wall_ms:7.2f} {cost.processor_ms / bare.processor_ms:9.2f}" if bare else ""
    print(f"{name:44} {cost.wall_ms:8.3f} {cost.processor_ms:10.3f} {ratio}")
    return cost


async def bench(addresses: Addresses, count: int) -> None:
    """All operations, in turn."""
    run = f"bench-{os.getpid()}-{time.time_ns()}"
    database = Database(addresses.appender, pool_size=16)
    blobs = BlobStore(database, ObjectStore(addresses.bucket))
    ledger = Ledger(database, blobs)
    url = driver_url(addresses.migrator).set(drivername="postgresql").render_as_string(hide_password=False)
    bare = await psycopg.AsyncConnection.connect(url, autocommit=True)
    await bare.execute(BARE_TABLE)

    async def bare_insert(number: int) -> None:
        sealed = seal(
            stream="bare",
            seq=number,
            key=f"turn/0/{number}",
            type="TurnRecorded",
            schema=1,
            actor="sandbox:bench",
            body=turn(number).body(),
            prev_hash=GENESIS,
            time="2026-01-31T23:59:59.000000Z",
        )
        exact = sealed.exact_bytes()
        await bare.execute(BARE, ("bare", number, sealed.key, sealed.type, hash_of(exact), exact))

    async def append(number: int, stream: str, events: int = 1, blob_bytes: int = 0) -> None:
        first = number * events
        await ledger.append(
            f"rollout/{run}/{stream}/0/0",
            [turn(first + offset) for offset in range(events)],
            expected_seq=first,
            actor="sandbox:bench",
            blobs=[os.urandom(blob_bytes)] if blob_bytes else (),
        )

    print(f"{'one after the other':44} {'wall ms':>8} {'cpu ms':>10} {'× wall':>7} {'× cpu':>9}")
    base = await measure("bare psycopg insert of a sealed event", count, bare_insert, None)
    await measure("append of 1 event", count, lambda n: append(n, "1"), base)
    await measure("append of 10 events, each append", count // 5, lambda n: append(n, "10", 10), base)
    await measure("append of 1 event with a blob of 4 KiB", count, lambda n: append(n, "4k", 1, 4096), base)
    await measure("put of a blob of 4 KiB", count, lambda n: blobs.put(os.urandom(4096)), base)
    await measure("put of a blob of 256 KiB (S3)", count // 10, lambda n: blobs.put(os.urandom(256 << 10)), base)

    async def writer(sample: int) -> None:
        stream = f"rollout/{run}/many/0/{sample}"
        for number in range(count // 16):
            await ledger.append(stream, [turn(number)], expected_seq=number, actor="sandbox:bench")

    began = time.perf_counter()
    await asyncio.gather(*(writer(sample) for sample in range(16)))
    print(f"16 streams at once: {count // 16 * 16 / (time.perf_counter() - began):,.0f} appends/s")
    began = time.perf_counter()
    events = len(await ledger.read_prefix(f"rollout/{run}/"))
    print(f"read and parsed: {events / (time.perf_counter() - began):,.0f} events/s")
    reading = Database(addresses.projector, pool_size=2)
    projector = Projector(reading)
    began = time.perf_counter()
    events = await projector.catch_up()
    print(f"projected: {events / (time.perf_counter() - began):,.0f} events/s")
    await bare.execute("DROP TABLE bench_bare")
    await bare.close()
    await reading.close()
    await database.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1000, help="operations of each kind")
    asyncio.run(bench(resolve(), parser.parse_args().events))
