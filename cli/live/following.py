"""Looking at a run from outside: whoever runs it, its events are in the ledger."""

import asyncio
import math
from dataclasses import dataclass

from rich.console import Console

from cli.asking import Asked, Word, ask_once
from cli.live import LiveView, make_view
from cli.reading import Follower, open_reader, workflow_page
from stepwell.report.picture import RunPicture
from workers.services.addresses import Addresses
from workers.services.watch import quieten_client, watched

REFRESH_S = 0.5
"""Between two looks at the ledger."""


@dataclass(frozen=True)
class Seen:
    """How a run stands."""

    picture: RunPicture
    """By the ledger."""
    word: Word
    """By its workflow."""


async def look_and_ask(addresses: Addresses, run: str) -> Seen:
    """How a run stands now, and what its workflow says; a run that is over says no more.

    Raises:
        NoSuchRun: there is none of this name.
        DatabaseUnavailable, BlobStoreUnavailable: no answer.
        UnknownEvent: an event of a newer Stepwell.
    """
    async with open_reader(addresses) as reader:
        await reader.require(run)
        follower = Follower(reader, run)
        await follower.refresh()
        over = follower.picture.finished is not None
        return Seen(follower.picture, Word() if over else await ask_once(reader, addresses, run))


async def follow(addresses: Addresses, run: str, console: Console) -> RunPicture:
    """Shows a run live until it has ended, and waits for stores that are away. Raises as `look_and_ask`."""
    quieten_client()
    async with open_reader(addresses, wait_s=math.inf) as reader:
        await reader.require(run)
        follower, asked = Follower(reader, run), Asked(reader, addresses, run)
        view = make_view(console, ui_url=workflow_page(addresses, run))
        asking = asyncio.create_task(asked.keep_asking())
        try:
            async with watched(addresses, view.message):
                await _show(follower, view, asked)
        finally:
            asking.cancel()
            await asyncio.wait([asking])
            view.close()
    return follower.picture


async def _show(follower: Follower, view: LiveView, asked: Asked) -> None:
    while True:
        await follower.refresh()
        view.update(follower.picture, asked.word.progress, asked.word.silence)
        if follower.picture.finished is not None:
            return
        await asyncio.sleep(REFRESH_S)
