"""How fast a run is verified, against what no verification can do without.

    python bench/audit.py RUN [TIMES]

For a run of the services in `$STEPWELL_HOME`. Events: `read_run` with every rule, but no payloads, against a bare read
of the same rows and against SHA-256 over their bytes. Blobs: hashing every blob where it lies, against SHA-256 over as
many bytes in memory. CPU and wall clock of this process; the least of TIMES (3) counts.
"""

import asyncio
import hashlib
import sys
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from db.blobs import BlobStore
from db.database import Database
from db.objects import ObjectStore
from db.run_record import check_blobs, read_run
from db.run_rows import named_rows, run_rows
from stepwell.audit.verification import verify
from workers.services.addresses import Addresses
from workers.services.lifecycle import held


class Spent(NamedTuple):
    """What something took, in seconds."""

    wall_s: float
    cpu_s: float


async def least(work: Callable[[], Awaitable[object]], times: int) -> Spent:
    """The least of some tries."""
    tries: list[Spent] = []
    for _ in range(times):
        wall, cpu = time.perf_counter(), time.process_time()
        await work()
        tries.append(Spent(time.perf_counter() - wall, time.process_time() - cpu))
    return Spent(min(each.wall_s for each in tries), min(each.cpu_s for each in tries))


async def measure(addresses: Addresses, run: str, times: int) -> None:
    """Prints the ratios."""
    database, objects = Database(addresses.auditor), ObjectStore(addresses.bucket)
    blobs = BlobStore(database, objects)
    record = await read_run(database, blobs, run)
    if record is None:
        sys.exit(f"no run {run!r}")
    rows: list[bytes] = []

    async def bare() -> None:
        rows.clear()
        verdicts = sorted(name for name in record.streams if name.startswith("verdict/"))
        async with database.engine.connect() as connection:
            async for stream in run_rows(connection, run):
                rows.extend(row.exact for row in stream.rows)
            async for stream in named_rows(connection, verdicts):
                rows.extend(row.exact for row in stream.rows)

    async def hashed() -> None:
        for exact in rows:
            hashlib.sha256(exact).digest()

    async def verified() -> None:
        again = await read_run(database, blobs, run, payloads=False)
        assert again is not None
        verify(again)

    read, hashing, verifying = await least(bare, times), await least(hashed, times), await least(verified, times)
    events = record.events
    print(f"{events:,} events of {sum(map(len, rows)) / events:.0f} bytes in {len(record.streams):,} streams")
    print(f"verify       {events / verifying.wall_s:10,.0f} events/s ({events / verifying.cpu_s:,.0f} by CPU)")
    print(f"  to a bare read of the rows   {verifying.wall_s / read.wall_s:6.1f} times ({read.wall_s:.2f} s)")
    print(f"  to SHA-256 over their bytes  {verifying.wall_s / hashing.wall_s:6.1f} times ({hashing.wall_s:.2f} s)")
    sizes = await blobs.sizes(record.named_blobs)
    total = sum(sizes.values())
    memory = bytes(1 << 20)

    async def check_all() -> None:
        await check_blobs(blobs, sizes)

    async def in_memory() -> None:
        for _ in range(total >> 20):
            hashlib.sha256(memory).digest()

    checking, bound = await least(check_all, times), await least(in_memory, times)
    mb = total / 1e6
    print(f"{len(sizes):,} blobs, {mb:,.1f} MB")
    print(f"blobs        {mb / checking.wall_s:10,.1f} MB/s, {len(sizes) / checking.wall_s:,.0f} blobs/s")
    print(f"  to SHA-256 in memory         {checking.wall_s / bound.wall_s:6.1f} times ({mb / bound.wall_s:,.0f} MB/s)")
    await objects.close()
    await database.close()


def main() -> int:
    """Measures."""
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    with held() as addresses:
        asyncio.run(measure(addresses, sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3))
    return 0


if __name__ == "__main__":
    sys.exit(main())
