"""Runs pytest inside a sandbox: `python -I -c <this>`, the plan on standard input.

Plan and answer are those of `run_calls`, with pytest's node ids. Results come from a plugin object of ours, never from
text; pytest is imported, with no plugin of anybody else's, before the work tree is on the path, and the tree stands
last on it, so that no file there takes the place of a module of the interpreter or of pytest.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal


def main() -> None:
    parts: list[bytes] = []
    while chunk := os.read(0, 1 << 16):
        parts.append(chunk)
    nonce, count, *rest = b"".join(parts).decode().split("\n")
    watched, tests = rest[: int(count)], rest[int(count) :]
    write, leave, own = os.write, os._exit, os.getpid
    pid = own()
    spare = [os.dup(1) for _ in range(1 + os.urandom(1)[0])]
    out = spare.pop()
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    import pytest

    null = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    for descriptor in (null, *spare):
        os.close(descriptor)
    sys.path += ["/work", "/work/src"]
    numbers = {test: number for number, test in enumerate(tests)}
    outcomes: dict[str, tuple[str, str]] = {}
    told: set[str] = set()

    def say(text: str) -> None:
        if own() != pid:  # a copy of this process, which tested code made, has nothing to say
            leave(0)
        data = f"{nonce}\t{text}\n".encode(errors="replace")
        while data:
            data = data[write(out, data) :]

    def tell(test: str, outcome: tuple[str, str]) -> None:
        if test in numbers and test not in told:
            told.add(test)
            say(f"{numbers[test]}\t{outcome[0]}\t{outcome[1]}")

    def describe(item: pytest.Item, error: BaseException) -> str:
        """Line of the test, and the exception. Pytest's own form parses the file again for every failure."""
        path = item.nodeid.partition("::")[0]
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != "/work/" + path:
            trace = trace.tb_next
        place = f"{path}:{trace.tb_lineno}" if trace else path
        return " ".join(f"{place}: {type(error).__name__}: {error}".split())[:300]

    class Reporter:
        """Keeps the worst phase of every test, and tells it when the test is over."""

        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            expected = hasattr(report, "wasxfail")
            detail = str(report.longrepr or report.outcome)
            if report.failed:
                status = "failed" if report.when == "call" else "error"
                if report.when != "teardown" or report.nodeid not in outcomes or outcomes[report.nodeid][0] != "failed":
                    outcomes[report.nodeid] = status, detail
            elif report.skipped:
                outcomes.setdefault(report.nodeid, ("xfailed" if expected else "skipped", detail))
            elif report.when == "call":
                outcomes.setdefault(report.nodeid, ("xpassed" if expected else "passed", ""))

        def pytest_runtest_logfinish(self, nodeid: str) -> None:
            if nodeid in outcomes:
                tell(nodeid, outcomes.pop(nodeid))

        def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> pytest.TestReport:
            outcome: Literal["passed", "failed", "skipped"] = "passed"
            detail = None
            if call.excinfo is not None:
                outcome = "skipped" if isinstance(call.excinfo.value, pytest.skip.Exception) else "failed"
                detail = describe(item, call.excinfo.value)
            assert call.when != "collect"
            return pytest.TestReport(item.nodeid, item.location, {}, outcome, detail, call.when)

        def pytest_collectreport(self, report: pytest.CollectReport) -> None:
            if report.failed:
                detail = " ".join(str(report.longrepr).split())[-300:]
                for test in tests:
                    if not report.nodeid or (test + "::").startswith(report.nodeid + "::"):
                        tell(test, ("error", detail))

    placed = [os.lstat("/work/" + path) for path in watched]
    say("start\t" + " ".join(f"{status.st_ino}:{status.st_ctime_ns}" for status in placed))
    options = ["--rootdir=/work", "-c", "/dev/null", "--import-mode=importlib", "--assert=plain"]
    options += ["--capture=no", "-q", "-p", "no:cacheprovider", "-p", "no:doctest", "-p", "no:junitxml"]
    options += ["-p", "no:pastebin", "-p", "no:faulthandler", "-p", "no:unraisableexception", "-p", "no:logging"]
    # Whole files, since an id that cannot be collected would end the session before any test.
    files = sorted({test.partition("::")[0] for test in tests})

    class Selection:
        """Runs what the plan names."""

        @pytest.hookimpl(trylast=True)
        def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
            items[:] = [item for item in items if item.nodeid in numbers]

    try:
        pytest.main([*options, *("/work/" + file for file in files)], plugins=[Selection(), Reporter()])
    except BaseException as error:
        # The tests that it takes with it are missing, and that is their outcome.
        outcomes[""] = "error", type(error).__name__
    say("end")
    leave(0)


main()
