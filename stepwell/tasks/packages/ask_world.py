"""What a test asks of the world outside: the time, chance, another process or thread, a socket.

What such a test says, or what it says of a defect, may be otherwise on the next machine, on a busy one, or next year.
Runs in the sandbox, before `record_tests` and in one program with it.
"""

import sys
from types import FrameType

ROOT = "/work/"
CLOCKS = ("time", "monotonic", "perf_counter", "process_time", "thread_time", "clock_gettime")
WORLD = frozenset(
    {f"time.{clock}{unit}" for clock in CLOCKS for unit in ("", "_ns")}
    | {f"time.{name}" for name in ("sleep", "localtime", "gmtime", "ctime", "asctime", "strftime")}
    | {"datetime.date.today", "datetime.datetime.now", "datetime.datetime.utcnow"}
    | {"posix.urandom", "posix.getrandom", "posix.getpid", "posix.fork", "_posixsubprocess.fork_exec"}
    | {"_thread.start_new_thread", "_thread.start_joinable_thread", "_socket.socketpair"}
    | {f"_socket.socket.{name}" for name in ("bind", "connect", "connect_ex")}
)
"""Built-in functions that answer otherwise from one time, process or machine to the next."""
WORLD_NAMES = frozenset(name.rpartition(".")[2] for name in WORLD)
CHANCE = ("random", "getrandbits")
TEST_RUNNERS = frozenset({"_pytest", "pluggy", "unittest"})


def asked_of_world(function: object) -> str | None:
    """Full name of a built-in function if no two runs need get the same from it."""
    name = getattr(function, "__name__", None)
    owner = getattr(function, "__self__", None)
    if name in CHANCE and owner is getattr(sys.modules.get("random"), "_inst", function):
        return f"random.{name}"
    if name not in WORLD_NAMES:
        return None
    classes = (owner if isinstance(owner, type) else type(owner)).__mro__
    full = [
        f"{getattr(function, '__module__', None)}.{name}",
        *(f"{c.__module__}.{c.__name__}.{name}" for c in classes),
    ]
    return next((found for found in full if found in WORLD), None)


def is_of_tests(frame: FrameType | None) -> bool:
    """Whether a frame is of the work tree or was called from it, and not by what runs the tests."""
    while frame is not None and not frame.f_code.co_filename.startswith(ROOT):
        if str(frame.f_globals.get("__name__")).partition(".")[0] in TEST_RUNNERS:
            return False
        frame = frame.f_back
    return frame is not None
