"""Which built-in functions answer otherwise from one time or machine to the next, and what will never end."""

import datetime
import os
import random
import socket
import sys
import threading
import time
from types import FrameType

import pytest

from stepwell.tasks.packages import ask_world
from stepwell.tasks.packages.ask_world import asked_of_world, is_of_tests
from stepwell.tasks.packages.run_until_stuck import waits


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (time.time, "time.time"),
        (time.monotonic_ns, "time.monotonic_ns"),
        (time.sleep, "time.sleep"),
        (datetime.datetime.now, "datetime.datetime.now"),
        (datetime.date.today, "datetime.date.today"),
        (datetime.datetime.today, "datetime.date.today"),
        (random.random, "random.random"),
        (random.getrandbits, "random.getrandbits"),
        (os.urandom, "posix.urandom"),
        (os.getpid, "posix.getpid"),
        (random.Random(3).random, None),
        (datetime.date(2020, 1, 1).strftime, None),
        (datetime.datetime.fromtimestamp, None),
        (len, None),
        ([].append, None),
        (object(), None),
    ],
)
def test_what_depends_on_time_chance_or_process_is_known_by_its_full_name(function: object, name: str | None) -> None:
    assert asked_of_world(function) == name


def test_a_socket_that_is_bound_asks_the_world_and_one_that_is_closed_does_not() -> None:
    with socket.socket() as made:
        assert asked_of_world(made.bind) == "_socket.socket.bind"
        assert asked_of_world(made.fileno) is None


def test_a_thread_is_noticed_where_it_is_started() -> None:
    seen: list[str] = []

    def watch(_: FrameType, event: str, function: object) -> None:
        asked = asked_of_world(function) if event == "c_call" else None
        if asked is not None:
            seen.append(asked)

    sys.setprofile(watch)
    try:
        thread = threading.Thread(target=len, args=("",))
        thread.start()
    finally:
        sys.setprofile(None)
    thread.join()
    assert seen[0].startswith("_thread.start_")


def called_by(path: str, module: str, inner: str) -> FrameType:
    """Frame of a function in a module that a function of a file calls."""
    frames: list[FrameType] = []
    called = {"__name__": module, "frames": frames, "sys": sys}
    exec(compile("def f(): frames.append(sys._getframe())", inner, "exec"), called)
    exec(compile("f()", path, "exec"), {"__name__": "m", "f": called["f"]})
    return frames[0]


@pytest.mark.parametrize(
    ("path", "module", "said"),
    [
        ("/tree/tests/test_a.py", "threading", True),
        ("/tree/a.py", "a", True),
        ("/usr/lib/runner.py", "threading", False),
        ("/tree/tests/test_a.py", "_pytest.timing", False),
        ("/tree/tests/test_a.py", "unittest.case", False),
    ],
)
def test_what_the_runner_of_tests_asks_is_not_the_tests_doing(
    path: str, module: str, said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ask_world, "ROOT", "/tree/")  # Nothing of what runs this test lies there.
    assert is_of_tests(called_by(path, module, "/usr/lib/x.py")) is said


@pytest.mark.parametrize(
    ("states", "now", "said"),
    [
        ("SS", ["1 5 5", "2 7 7"], True),
        ("SR", ["1 5 5", "2 7 7"], False),
        ("SD", ["1 5 5", "2 7 7"], False),
        ("SS", ["1 5 5", "2 8 7"], False),
        ("S", ["1 5 5"], False),
    ],
)
def test_only_what_cannot_run_and_did_not_run_waits(states: str, now: list[str], said: bool) -> None:
    assert waits(states, now, ["1 5 5", "2 7 7"]) is said
