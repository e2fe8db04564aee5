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
    nonce, *tests = b"".join(parts).decode().split("\n")
    write, leave = os.write, os._exit
    out = os.dup(os.dup(1))
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    import pytest

    null = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    sys.path += ["/work", "/work/src"]
    numbers = {test: number for number, test in enumerate(tests)}
    outcomes: dict[str, str] = {}

    def describe(item: pytest.Item, error: BaseException) -> str:
        """Line of the test, and the exception. Pytest's own form parses the file again for every failure."""
        path = item.nodeid.partition("::")[0]
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != "/work/" + path:
            trace = trace.tb_next
        place = f"{path}:{trace.tb_lineno}" if trace else path
        return " ".join(f"{place}: {type(error).__name__}: {error}".split())[:300]

    class Reporter:
        """Keeps the worst phase of every test."""

        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed or (report.skipped and report.nodeid not in outcomes):
                outcomes[report.nodeid] = f"failed\t{report.longrepr or report.outcome}"
            elif report.when == "call" and report.passed:
                outcomes.setdefault(report.nodeid, "passed\t")

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
                    if test.startswith(report.nodeid):
                        outcomes[test] = "failed\t" + detail

    write(out, f"{nonce}\tstart\n".encode())
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
        outcomes.setdefault("", f"failed\t{type(error).__name__}")
    lines = [f"{nonce}\t{numbers[test]}\t{outcome}" for test, outcome in outcomes.items() if test in numbers]
    lines.append(f"{nonce}\tend")
    data = ("\n".join(lines) + "\n").encode(errors="replace")
    while data:
        data = data[write(out, data) :]
    leave(0)


main()
