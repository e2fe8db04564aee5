"""Runs hidden tests with the image's own interpreter: `python -W ignore -c <this>`, the plan on standard input.

It must run on every Python from 3.7 and every pytest from 4: standard library, old syntax. The plan is lines: a nonce,
`pytest` or `unittest`, the absolute path of the work tree, the folder of the tests in it, and pytest's options. The
answer goes to what was standard output when it began, in lines of nonce, status and node id, the file's path from the
work tree; `start` comes before any tested code is loaded, `end` after all. What tests print goes nowhere. As with
`python -m pytest`, the work tree is the current folder and first on the path, but only once pytest has been imported.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import unittest
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any

    Say = Callable[[str], None]
    ExcInfo = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]

RANKS = {"passed": 0, "xpassed": 0, "skipped": 0, "xfailed": 0, "error": 1, "failed": 2}


def read_plan() -> list[str]:
    """Lines of standard input."""
    parts = []
    while True:
        chunk = os.read(0, 1 << 16)
        if not chunk:
            return b"".join(parts).decode("utf-8", "surrogateescape").split("\n")
        parts.append(chunk)


def make_say(nonce: str) -> Say:
    """Writes lines to what standard output is now, and points the standard streams elsewhere."""
    write, leave, own = os.write, os._exit, os.getpid
    pid = own()
    spare = [os.dup(1) for _ in range(1 + ord(os.urandom(1)))]
    out = spare.pop()
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    for descriptor in spare + [null]:  # noqa: RUF005  # as the rest of this file
        os.close(descriptor)

    def say(text: str) -> None:
        if own() != pid:  # A copy of this process, which tested code made, has nothing to say.
            leave(0)
        data = (nonce + "\t" + text + "\n").encode("utf-8", "backslashreplace")
        while data:
            data = data[write(out, data) :]

    return say


def run_pytest(say: Say, work: str, tests: str, options: list[str]) -> int:
    """Runs the tests by pytest; its exit status."""
    import pytest

    sys.argv = [os.path.join(os.path.dirname(pytest.__file__), "__main__.py"), tests]
    sys.path.insert(0, work)
    say("start\t" + pytest.__version__)
    return int(pytest.main(["-q"] + options + [tests], plugins=[Reporter(say, work)]))  # noqa: RUF005


class Reporter:
    """Keeps the worst that is said of a test, and tells it when the test is over."""

    def __init__(self, say: Say, work: str) -> None:
        self._say = say
        self._work = os.path.realpath(work)
        self._root = self._work
        self._worst: dict[str, str] = {}

    def pytest_configure(self, config: Any) -> None:
        self._root = os.path.realpath(str(getattr(config, "rootpath", None) or config.rootdir))

    def pytest_runtest_logreport(self, report: Any) -> None:
        expected = hasattr(report, "wasxfail")
        status = None
        if report.outcome == "failed":
            status = "failed" if report.when == "call" else "error"
        elif report.outcome == "skipped":
            status = "xfailed" if expected else "skipped"
        elif report.outcome == "passed" and report.when == "call":
            status = "xpassed" if expected else "passed"
        if status is not None:
            worst = self._worst.setdefault(report.nodeid, status)
            if RANKS[status] > RANKS[worst]:
                self._worst[report.nodeid] = status

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        if nodeid in self._worst:
            self._tell(self._worst.pop(nodeid), nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        if report.outcome == "failed":
            self._tell("error", report.nodeid)

    def _tell(self, status: str, node: str) -> None:
        path, separator, rest = node.partition("::")
        path = os.path.relpath(os.path.join(self._root, path), self._work)
        self._say(status + "\t" + (path + separator + rest).replace("\n", "\\n").replace("\t", "\\t"))


def run_unittest(say: Say, work: str, tests: str) -> None:
    """Runs the tests by unittest, those of the folder alone."""
    import unittest

    folder = os.path.join(work, tests)
    sys.argv = [os.path.join(folder, "runner.py")]
    sys.path[:0] = [work, folder]
    say("start\tunittest")
    top = work if os.path.exists(os.path.join(folder, "__init__.py")) else folder
    suite = unittest.TestLoader().discover(folder, pattern="test_*.py", top_level_dir=top)
    suite.run(make_result(say, work))


def make_result(say: Say, work: str) -> unittest.TestResult:
    """Tells each test when it is over, under an id like pytest's."""
    import unittest

    def tell(status: str, test: unittest.TestCase) -> None:
        module = type(test).__module__
        path = getattr(sys.modules.get(module), "__file__", None) or ""
        inside = os.path.realpath(path).startswith(os.path.realpath(work) + os.sep)
        place = os.path.relpath(os.path.realpath(path), os.path.realpath(work)) if inside else module
        names = [place, type(test).__name__, str(getattr(test, "_testMethodName", ""))]
        say(status + "\t" + "::".join(name for name in names if name))

    class Result(unittest.TestResult):
        def addSuccess(self, test: unittest.TestCase) -> None:
            tell("passed", test)

        def addFailure(self, test: unittest.TestCase, err: ExcInfo) -> None:
            tell("failed", test)

        def addError(self, test: unittest.TestCase, err: ExcInfo) -> None:
            tell("error", test)

        def addSkip(self, test: unittest.TestCase, reason: str) -> None:
            tell("skipped", test)

    return Result()


def main() -> None:
    plan = read_plan()
    nonce, kind, work, tests = plan[:4]
    leave = os._exit
    say = make_say(nonce)
    os.chdir(work)
    # `python -c` puts the current folder on the path: nothing there may stand in for a module of the interpreter.
    sys.path[:] = [path for path in sys.path if path and os.path.realpath(path) != os.path.realpath(work)]
    ended = "end"
    try:
        if kind == "pytest":
            code = run_pytest(say, work, tests, [option for option in plan[4:] if option])
            ended += "" if code in (0, 1) else "\tpytest's exit status " + str(code)
        else:
            run_unittest(say, work, tests)
    except BaseException as error:
        ended += "\t" + type(error).__name__
    say(ended)
    leave(0)


main()
