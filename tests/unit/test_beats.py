"""Beats over a pipe: what was silent, and what was only not listened to."""

import asyncio
import os
from collections.abc import Iterator

import pytest

from workers.beats import Pulse, beat


@pytest.fixture
def pulse() -> Iterator[Pulse]:
    pulse = Pulse()
    yield pulse
    pulse.close()


def fill(descriptor: int) -> None:
    """Writes until the pipe takes no more."""
    os.set_blocking(descriptor, False)
    try:
        while True:
            os.write(descriptor, bytes(4096))
    except BlockingIOError:
        return


def test_silence_is_counted_from_the_start_and_ends_with_a_beat(pulse: Pulse) -> None:
    for second in range(4):
        pulse.look(float(second))
    assert (pulse.silent_s, pulse.begun) == (3.0, False)
    os.write(pulse.writing, b".")
    pulse.look(4.0)
    assert (pulse.silent_s, pulse.begun) == (0.0, True)
    pulse.look(4.5)
    assert pulse.silent_s == 0.5
    pulse.started()


def test_a_listener_that_was_held_up_accuses_nobody(pulse: Pulse) -> None:
    pulse.look(0.0)
    pulse.look(100.0)
    assert pulse.silent_s == 1.0
    pulse.started()


def test_the_end_of_a_worker_is_silence(pulse: Pulse) -> None:
    pulse.started()
    pulse.look(0.0)
    pulse.look(1.0)
    assert pulse.silent_s == 1.0


async def test_a_loop_that_turns_is_heard(pulse: Pulse) -> None:
    beating = asyncio.create_task(beat(pulse.writing))
    await asyncio.sleep(0.05)
    pulse.look(0.0)
    assert pulse.begun
    assert not os.get_inheritable(pulse.writing)
    beating.cancel()
    pulse.started()


async def test_a_pipe_that_nobody_empties_holds_nobody_up(pulse: Pulse) -> None:
    fill(pulse.writing)
    beating = asyncio.create_task(beat(pulse.writing))
    await asyncio.sleep(0.05)
    assert not beating.done()
    beating.cancel()
    pulse.started()


async def test_a_pipe_whose_listener_is_gone_ends_the_beats() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    await asyncio.wait_for(beat(writing), timeout=5)
    os.close(writing)
