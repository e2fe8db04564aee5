"""Beats over a pipe: what was silent, and what was only not listened to."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from workers.beats import Pulse, beat
from workers.watchdog import HUNG_STATUS, Watchdog


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
    beating = asyncio.create_task(beat(pulse.writing, Watchdog()))
    await asyncio.sleep(0.05)
    pulse.look(0.0)
    assert pulse.begun
    assert not os.get_inheritable(pulse.writing)
    beating.cancel()
    pulse.started()


async def test_a_pipe_that_nobody_empties_holds_nobody_up(pulse: Pulse) -> None:
    fill(pulse.writing)
    beating = asyncio.create_task(beat(pulse.writing, Watchdog()))
    await asyncio.sleep(0.05)
    assert not beating.done()
    beating.cancel()
    pulse.started()


async def test_a_pipe_whose_listener_is_gone_does_not_end_the_beats() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    beating = asyncio.create_task(beat(writing, Watchdog()))
    await asyncio.sleep(0.05)
    assert not beating.done()
    beating.cancel()
    os.close(writing)


HANGING = """
import asyncio, time
from workers.beats import beat
from workers.watchdog import Watchdog

async def main():
    watchdog = Watchdog(hung_s={hung_s})
    beating = asyncio.create_task(beat(None, watchdog))
    watchdog.start()
    await asyncio.sleep(2.5)
    the_hang()

def the_hang():
    time.sleep({hang_s})

asyncio.run(main())
"""


def test_a_process_whose_loop_hangs_ends_and_says_where() -> None:
    script = HANGING.format(hung_s=2, hang_s=60)
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=50)
    assert ended.returncode == HUNG_STATUS
    assert "the_hang" in ended.stderr


def test_a_process_that_was_stopped_and_let_go_is_not_taken_for_one_that_hangs() -> None:
    process = subprocess.Popen([sys.executable, "-c", HANGING.format(hung_s=3, hang_s=0)])
    time.sleep(1.0)
    process.send_signal(signal.SIGSTOP)
    time.sleep(4.0)
    process.send_signal(signal.SIGCONT)
    assert process.wait(timeout=50) == 0
