"""The runs that are not over, each with what it waits for."""

import asyncio
from dataclasses import dataclass

from cli.asking import Word, ask, asking_client
from cli.live.waits import waits
from cli.reading import Reader, open_reader
from stepwell.events import RunFinished
from stepwell.events.streams import health_stream, operator_stream, run_stream
from stepwell.report.picture import RunPicture
from workers.services.addresses import Addresses

NEWEST = 20
"""Runs that are looked at, of those that are not over."""


@dataclass(frozen=True)
class RunUnderWay:
    """One of them."""

    run: str
    """Its name."""
    recipe: str
    """Name of its recipe."""
    state: str
    """As its workflow says; `silent` if that does not answer."""
    waits: list[str]
    """What holds it up, in words, with what to do."""


async def runs_under_way(addresses: Addresses) -> list[RunUnderWay]:
    """The newest runs that are not over, oldest first.

    Raises:
        DatabaseUnavailable: no connection.
    """
    async with open_reader(addresses) as reader:
        newest = [picture for picture in await _pictures(reader) if picture.finished is None][-NEWEST:]
        client = await asking_client(addresses)
        words = await asyncio.gather(*(ask(reader, client, picture.run) for picture in newest))
    return [_told(picture, word) for picture, word in zip(newest, words, strict=True)]


def _told(picture: RunPicture, word: Word) -> RunUnderWay:
    state = "silent" if word.progress is None else word.progress.state
    held = waits(picture, word.progress, word.silence)
    return RunUnderWay(picture.run, picture.recipe_name, state, [wait.line for wait in held])


async def _pictures(reader: Reader) -> list[RunPicture]:
    """Of every run that is not over: what its own stream, its operators and its watcher say."""
    pictures: list[RunPicture] = []
    for run in await reader.runs():
        last = await reader.last_event(run_stream(run))
        if last is not None and not isinstance(last.event, RunFinished):
            picture = RunPicture(run)
            for stream in (run_stream(run), operator_stream(run), health_stream(run)):
                picture.see_all((each.envelope, each.event) for each in await reader.stream(stream))
            pictures.append(picture)
    return pictures
