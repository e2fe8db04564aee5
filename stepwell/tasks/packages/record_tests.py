"""Runs a package's tests inside a sandbox and writes down what they run: `python -I -c <ask_world.py, then this>`, the
plan on standard input as JSON, the answer in the file `ANSWER`.

The plan: `tests`, ids to run, or none for all under `folders`; `sources`, paths whose lines and functions are of
interest; `budget`, lines of the work tree that may run, after which all is ended: a defect that makes a loop endless is
found after the same number of lines on every machine. For each test the answer has its outcome, the error that ended
it, the lines of `sources` that it ran, how many lines that were, what it asked the world outside, and the calls that it
made into the sources itself: name, arguments and result as text.

Trusted code is run by it: the package as it was published, or with a defect of ours. A policy's work never is.
"""

import json
import opcode
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Generator
from types import FrameType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stepwell.tasks.packages.ask_world import ROOT, asked_of_world, is_of_tests

Trace = Callable[[FrameType, str, object], "Trace | None"]

ANSWER = "/work/.recording.json"
CALLS_LIMIT = 200
"""Calls kept of one test."""
TEXT_LIMIT = 240
"""Characters of one value; a longer one is not shown."""
YIELDS_LIMIT = 12
"""Values kept of one generator."""
GENERATOR = 0x20
COROUTINE = 0x80 | 0x200
ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}|(?<![.\d])\d{14,15}(?![.\d])")
"""As `repr` writes one, or as `id` gives it."""
ELIDED = "…"
NAMED = (type, type(lambda: 0), type(len))
"""What is shown by its name: classes and functions."""


class Call:
    """One call from a test into the package."""

    def __init__(self, frame: FrameType) -> None:
        code = frame.f_code
        self.name = f"{frame.f_globals.get('__name__')}:{code.co_qualname}"
        self.bound = "." in code.co_qualname and code.co_varnames[:1] in (("self",), ("cls",), ("klass",))
        self.arguments = arguments_of(frame)
        self.yields: list[str | None] = []
        self.result: str | None = None
        self.error: str | None = None
        self.returned = False
        """It came to its end."""

    def as_json(self) -> dict[str, object]:
        return vars(self)


def show(value: object) -> str | None:
    """A value as text; None if it is long, names an address, or cannot be shown."""
    if isinstance(value, NAMED):
        name = str(getattr(value, "__qualname__", "<"))
        return None if "<" in name else name
    if isinstance(value, (str, bytes, list, tuple, set, frozenset, dict)) and len(value) > TEXT_LIMIT:
        return None
    try:
        text = repr(value)
    except Exception:
        return None
    return None if len(text) > TEXT_LIMIT or ADDRESS.search(text) or ROOT in text else text


def show_error(error: BaseException) -> str:
    """Type and, if it is short and names no path or address, the message."""
    try:
        message = " ".join(str(error).split())
    except Exception:
        message = ""
    if not message or len(message) > TEXT_LIMIT or ADDRESS.search(message) or ROOT in message:
        return type(error).__name__
    return f"{type(error).__name__}: {message}"


def arguments_of(frame: FrameType) -> list[str]:
    """Arguments of a call as they would be written, those that are as the default left out."""
    code = frame.f_code
    values = frame.f_locals
    count = code.co_argcount
    names = code.co_varnames[: count + code.co_kwonlyargcount]
    function = function_of(frame)
    defaults = getattr(function, "__defaults__", None) or ()
    by_name: dict[str, object] = dict(zip(code.co_varnames[count - len(defaults) : count], defaults, strict=False))
    by_name |= getattr(function, "__kwdefaults__", None) or {}
    shown: list[str] = []
    skipped = False
    for index, name in enumerate(names):
        value = values.get(name)
        if name in by_name and by_name[name] is value:
            skipped = True
            continue
        text = show(value) or ELIDED
        shown.append(f"{name}={text}" if skipped or index >= count else text)
    rest = len(names)
    if code.co_flags & 0x04:
        extra = values.get(code.co_varnames[rest], ())
        shown += [show(value) or ELIDED for value in (extra if isinstance(extra, tuple) else ())]
        rest += 1
    if code.co_flags & 0x08:
        extra = values.get(code.co_varnames[rest], {})
        pairs = extra.items() if isinstance(extra, dict) else ()
        shown += [f"{name}={show(value) or ELIDED}" for name, value in pairs]
    return shown


def function_of(frame: FrameType) -> object:
    """The function that a frame runs, by its qualified name in its module; None if it is not found there."""
    found: object = None
    for position, part in enumerate(frame.f_code.co_qualname.split(".")):
        found = frame.f_globals.get(part) if position == 0 else getattr(found, part, None)
        if isinstance(found, property):
            found = found.fget
    found = getattr(found, "__wrapped__", found)
    return found if getattr(found, "__code__", None) is frame.f_code else None


class Recorder:
    """Writes down lines and calls of the test that runs."""

    def __init__(self, sources: list[str], tests: list[str], budget: int) -> None:
        self.sources = {ROOT + path: path for path in sources}
        self.roots = tuple(ROOT + path for path in tests)
        self.budget = budget
        self.start()

    def start(self) -> None:
        self.lines: dict[str, set[int]] = {}
        self.calls: list[Call] = []
        self.open: dict[FrameType, Call] = {}
        self.asked: str | None = None
        self.spent_before = self.budget

    def watch(self, frame: FrameType, event: str, function: object) -> None:
        """Profiles: notes the first thing that is asked of the world."""
        if event == "c_call" and self.asked is None:
            asked = asked_of_world(function)
            if asked is not None and is_of_tests(frame):
                self.asked = asked

    def trace(self, frame: FrameType, event: str, _: object) -> Trace | None:
        path = frame.f_code.co_filename
        if not path.startswith(ROOT):
            return None
        source = self.sources.get(path)
        if source is None:
            return self.count
        lines = self.lines.setdefault(source, set())
        lines.add(frame.f_lineno)
        call = self.open.get(frame)
        if call is None and self.is_of_interest(frame):
            call = self.open[frame] = Call(frame)
            self.calls.append(call)

        def local(frame: FrameType, event: str, value: object) -> Trace:
            if event == "line":
                lines.add(frame.f_lineno)
                self.spend()
            elif call is not None and event == "exception" and isinstance(value, tuple):
                call.error = show_error(value[1]) if isinstance(value[1], BaseException) else None
            elif call is not None and event == "return":
                self.close(call, frame, value)
            return local

        return local

    def is_of_interest(self, frame: FrameType) -> bool:
        """Whether a function that begins was called by a test, and its result is known when it ends."""
        caller, code = frame.f_back, frame.f_code
        by_test = caller is not None and caller.f_code.co_filename.startswith(self.roots)
        plain = not code.co_flags & COROUTINE and "<" not in code.co_qualname
        return by_test and plain and len(self.calls) < CALLS_LIMIT

    def close(self, call: Call, frame: FrameType, value: object) -> None:
        """The end of a call, or of one turn of a generator."""
        operation = opcode.opname[frame.f_code.co_code[frame.f_lasti]]
        if operation == "RETURN_GENERATOR":
            return
        if operation == "YIELD_VALUE":
            call.error = None
            if len(call.yields) < YIELDS_LIMIT:
                call.yields.append(show(value))
            return
        self.open.pop(frame, None)
        if operation.startswith("RETURN_"):
            call.error = None
            is_made = frame.f_code.co_name in ("__init__", "__new__")
            call.result = "" if is_made else "list" if frame.f_code.co_flags & GENERATOR else show(value)
            call.returned = True
        elif call.error and call.error.startswith("GeneratorExit"):
            call.error = None

    def count(self, frame: FrameType, event: str, _: object) -> Trace:
        self.spend()
        return self.count

    def spend(self) -> None:
        self.budget -= 1
        if self.budget < 0:
            answer({"ended": "budget"})


def answer(content: dict[str, object]) -> None:
    """Writes the answer, and ends; no hook of the interpreter's end runs."""
    with open(ANSWER, "w", encoding="utf-8") as file:
        json.dump(content, file)
    os._exit(0)


def main() -> None:
    plan = json.loads(sys.stdin.buffer.read())
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    import pytest

    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    sys.path += ["/work", "/work/src"]
    wanted = set(plan["tests"])
    recorder = Recorder(plan["sources"], plan["folders"], plan["budget"])
    tests: dict[str, dict[str, object]] = {}

    class Plugin:
        @pytest.hookimpl(trylast=True)
        def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
            if wanted:
                items[:] = [item for item in items if item.nodeid in wanted]

        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
            recorder.start()
            tests[item.nodeid] = {"passed": False}
            threading.settrace(recorder.trace)
            sys.settrace(recorder.trace)
            sys.setprofile(recorder.watch)
            try:
                return (yield)
            finally:
                sys.setprofile(None)
                sys.settrace(None)
                threading.settrace(None)
                found = tests[item.nodeid]
                found["spent"] = recorder.spent_before - recorder.budget
                found["asked"] = recorder.asked
                found["lines"] = {path: sorted(lines) for path, lines in recorder.lines.items()}
                found["calls"] = [call.as_json() for call in recorder.calls]

        def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> pytest.TestReport:
            found = tests[item.nodeid]
            if call.excinfo is not None:
                found["failed"] = True
                found.setdefault("error", show_error(call.excinfo.value))
            elif call.when == "call":
                found["passed"] = True
            outcome = "passed" if call.excinfo is None else "failed"
            assert call.when != "collect"
            return pytest.TestReport(item.nodeid, item.location, {}, outcome, None, call.when)  # pyright: ignore[reportArgumentType]

    options = ["--rootdir=/work", "-c", "/dev/null", "--import-mode=importlib", "--assert=plain"]
    options += ["--capture=no", "-q", "-p", "no:cacheprovider", "-p", "no:doctest", "-p", "no:junitxml"]
    options += ["-p", "no:pastebin", "-p", "no:faulthandler", "-p", "no:unraisableexception", "-p", "no:logging"]
    files = sorted({test.partition("::")[0] for test in wanted}) or plan["folders"]
    status = pytest.main([*options, *(ROOT + file for file in files)], plugins=[Plugin()])
    answer({"ended": "status", "status": int(status), "tests": tests, "cpu_s": time.process_time()})


main()
