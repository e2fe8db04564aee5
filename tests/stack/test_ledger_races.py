"""Two processes that write one stream: one wins each place, the other is fenced."""

import asyncio
import sys

import pytest

from db.ledger import Ledger
from tests.stack.database import DatabaseUrls

WRITER = """
import asyncio, sys
from db.database import Database
from db.errors import Fenced
from db.ledger import Ledger
from stepwell.events import AttemptOpened

async def main(url, stream, name, places):
    database = Database(url, pool_size=1)
    ledger = Ledger(database)
    await ledger.head(stream)
    print("ready", flush=True)
    sys.stdin.readline()
    won = []
    for seq in range(places):
        while (await ledger.head(stream) or (-1,))[0] < seq - 1:
            await asyncio.sleep(0)
        event = AttemptOpened(attempt=f"{name}-{seq}", worker=name, resumed_at=seq)
        try:
            await ledger.append(stream, [event], expected_seq=seq, actor=f"sandbox:{name}")
            won.append(seq)
        except Fenced:
            pass
    print(*won, flush=True)
    await database.close()

asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
"""

PLACES = 20


async def test_two_processes_share_a_stream_without_gap_or_double(
    database: DatabaseUrls, ledger: Ledger, fresh, pytestconfig: pytest.Config
) -> None:
    stream = f"rollout/{fresh()}/0/0/0"
    writers = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", WRITER, database.appender, stream, name, str(PLACES)),
            cwd=pytestconfig.rootpath,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        for name in ("one", "two")
    ]
    try:
        for writer in writers:
            assert await writer.stdout.readline() == b"ready\n"
        outputs = await asyncio.gather(*(writer.communicate(b"\n") for writer in writers))
    finally:
        for writer in writers:
            if writer.returncode is None:
                writer.kill()
                await writer.wait()
    won = [{int(seq) for seq in output.split()} for output, _ in outputs]
    assert won[0] | won[1] == set(range(PLACES))
    assert not won[0] & won[1]
    recorded = await ledger.read(stream)
    assert [each.envelope.actor for each in recorded] == [
        "sandbox:one" if seq in won[0] else "sandbox:two" for seq in range(PLACES)
    ]
    assert (await ledger.verify_stream(stream)).seq == PLACES - 1
