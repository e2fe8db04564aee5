"""Runs plain test functions inside a sandbox: `python -I -S -c <this>`, the plan on standard input.

The plan is lines: a nonce; the number of watched files, and their paths a line; then `file::function` a line. The
answer goes to what was standard output when it began: lines of nonce, number of the test, status and detail, each
written when the test has ended; `start`, with inode and time of change of each watched file, comes before any tested
code is loaded, `end` after all. Tested code has neither the descriptor by a known number nor the nonce by a name, and
what it prints goes nowhere. All test files are read and compiled before the first of them runs. No hook of the
interpreter's end runs.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # As in `typing`, whose import costs milliseconds.
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType


def main() -> None:
    read, write, leave, own = os.read, os.write, os._exit, os.getpid
    parts: list[bytes] = []
    while chunk := read(0, 1 << 16):
        parts.append(chunk)
    nonce, count, *rest = b"".join(parts).decode().split("\n")
    watched, tests = rest[: int(count)], rest[int(count) :]
    pid = own()
    spare = [os.dup(1) for _ in range(1 + os.urandom(1)[0])]
    out = spare.pop()
    null = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    for descriptor in (null, *spare):
        os.close(descriptor)

    def say(text: str) -> None:
        if own() != pid:  # a copy of this process, which tested code made, has nothing to say
            leave(0)
        data = f"{nonce}\t{text}\n".encode(errors="replace")
        while data:
            data = data[write(out, data) :]

    sys.path.append("/work")
    order: dict[str, list[tuple[int, str]]] = {}
    for number, test in enumerate(tests):
        path, _, function = test.partition("::")
        order.setdefault(path, []).append((number, function))
    codes: dict[str, CodeType] = {}
    for path in order:
        with open("/work/" + path, "rb") as file:
            codes[path] = compile(file.read(), "/work/" + path, "exec", dont_inherit=True)
    placed = [os.lstat("/work/" + path) for path in watched]
    say("start\t" + " ".join(f"{status.st_ino}:{status.st_ctime_ns}" for status in placed))

    def describe(error: BaseException) -> str:
        trace = error.__traceback__
        while trace is not None:
            path = trace.tb_frame.f_code.co_filename
            if path.startswith("/work/"):
                return f"{path[6:]}:{trace.tb_lineno}: {type(error).__name__}: {error}"
            trace = trace.tb_next
        return f"{type(error).__name__}: {error}"

    def attempt(function: Callable[..., object], *arguments: object) -> str:
        try:
            function(*arguments)
        except BaseException as error:
            try:
                return "failed\t" + " ".join(describe(error).split())[:300]
            except BaseException:
                return "failed\tan exception that cannot be described"
        return "passed\t"

    for path, functions in order.items():
        name = path.rsplit("/", 1)[-1].removesuffix(".py")
        module = type(sys)(name)
        module.__file__ = "/work/" + path
        sys.modules[name] = module
        loaded = attempt(exec, codes[path], module.__dict__)
        for number, function in functions:
            if loaded != "passed\t":
                outcome = loaded.replace("failed", "error", 1)
            elif function not in module.__dict__:
                outcome = "error\tthere is no such function"
            else:
                outcome = attempt(module.__dict__[function])
            say(f"{number}\t{outcome}")
    say("end")
    leave(0)


main()
