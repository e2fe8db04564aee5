"""What runs inside the sandboxes of programs: `python -I -S -c <this> MODE`, work as JSON on standard input.

`record` runs each publisher's solution under its tests and notes with what it was called. `answer` runs one answer on
such calls and says what it returned; no test, no expectation and no solution is in its sandbox. `check` runs the tests
again, where no answer ever was, on what the answer returned.

What crosses are plain values, written out in full: an object that says it is equal to everything has no such form, and
a subclass of a plain type crosses as the plain value that it holds. Who forges what `answer` says can only forge the
right values by computing them.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys

TYPE_CHECKING = False  # As in `typing`, whose import costs milliseconds.
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

CHECK_S = 30
"""Wall clock of one item's tests, of which returned values must not make a morning."""


class NoPlainValue(TypeError):
    """A value that cannot cross."""


class OutOfStep(Exception):
    """Tests called something else than they did when their calls were recorded."""


def encode(value: object) -> object:
    """A plain value as JSON: a list of its kind's letter and its content.

    Raises:
        NoPlainValue: it is none, or holds one.
    """
    if value is None:
        return ["n"]
    if isinstance(value, bool):
        return ["o", bool(value)]
    if isinstance(value, int):
        return ["i", hex(int.__index__(value))]
    if isinstance(value, float):
        return ["f", float.hex(value)]
    if isinstance(value, complex):
        plain = complex.__add__(value, 0j)
        return ["c", plain.real.hex(), plain.imag.hex()]
    if isinstance(value, str):
        return ["s", str.__str__(value)]
    if isinstance(value, (bytes, bytearray)):
        return ["b", bytes(value).hex()]
    if isinstance(value, list):
        return ["l", [encode(one) for one in list.__iter__(value)]]
    if isinstance(value, tuple):
        return ["t", [encode(one) for one in tuple.__iter__(value)]]
    if isinstance(value, set):
        return ["e", sorted((encode(one) for one in set.__iter__(value)), key=json.dumps)]
    if isinstance(value, frozenset):
        return ["z", sorted((encode(one) for one in frozenset.__iter__(value)), key=json.dumps)]
    if isinstance(value, dict):
        return ["d", [[encode(key), encode(inner)] for key, inner in dict.items(value)]]
    raise NoPlainValue("a " + type(value).__name__ + " is no plain value")


def decode(coded: object) -> object:
    """The plain value.

    Raises:
        NoPlainValue: `encode` makes no such JSON.
    """
    if not isinstance(coded, list) or not coded:
        raise NoPlainValue("no coded value")
    letter, *content = coded
    if letter == "n" and not content:
        return None
    if letter == "c" and len(content) == 2:
        return complex(float.fromhex(content[0]), float.fromhex(content[1]))
    if len(content) != 1:
        raise NoPlainValue("no coded value")
    inner = content[0]
    if letter == "o" and isinstance(inner, bool):
        return inner
    if letter == "s" and isinstance(inner, str):
        return inner
    if letter == "i" and isinstance(inner, str):
        return int(inner, 16)
    if letter == "f" and isinstance(inner, str):
        return float.fromhex(inner)
    if letter == "b" and isinstance(inner, str):
        return bytes.fromhex(inner)
    if letter == "d" and isinstance(inner, list):
        return {decode(key): decode(value) for key, value in inner}
    if letter in _SEVERAL and isinstance(inner, list):
        return _SEVERAL[letter]([decode(one) for one in inner])
    raise NoPlainValue("no coded value")


_SEVERAL: dict[str, Callable[[list[object]], object]] = {"l": list, "t": tuple, "e": set, "z": frozenset}


def call_of(arguments: tuple[object, ...], named: dict[str, object]) -> object:
    """A call as JSON."""
    return [encode(arguments), encode(named)]


def record(work: list[dict[str, str]]) -> list[object]:
    """For each test the calls that the solution was given, or why there is no telling."""
    said: list[object] = []
    for one in work:
        calls: list[object] = []
        try:
            space: dict[str, Any] = {"__name__": "solution"}
            exec(compile(one["prompt"] + one["solution"], "solution.py", "exec"), space)
            function = space[one["entry_point"]]

            noted = noting(function, calls)
            # The solution keeps its own names: what it calls of itself is no call of the tests.
            run_check(one, {**space, one["entry_point"]: noted}, noted)
            said.append({"calls": calls})
        except BaseException as error:
            said.append({"error": describe(error)})
    return said


def noting(function: Callable[..., object], calls: list[object]) -> Callable[..., object]:
    """The function, which notes each of its calls before it is made."""

    def noted(*arguments: object, **named: object) -> object:
        calls.append(call_of(arguments, named))
        return function(*arguments, **named)

    return noted


def check(work: list[dict[str, Any]]) -> list[object]:
    """For each test whether it passes on these results, and if not, why."""
    said: list[object] = []
    for one in work:
        try:
            space: dict[str, Any] = {"__name__": "prompt"}
            exec(compile(one["prompt"], "prompt.py", "exec"), space)
            replayed = replay(one["calls"], one["results"])
            space[one["entry_point"]] = replayed
            run_check(one, space, replayed)
            said.append({"passed": True, "why": "all tests passed"})
        except OutOfStep as error:
            said.append({"error": describe(error)})
        except BaseException as error:
            said.append({"passed": False, "why": describe(error)})
    return said


def run_check(one: dict[str, Any], space: dict[str, Any], candidate: object) -> None:
    """Runs the publisher's tests; raises what they raise. Their chance is the same each time."""
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(CHECK_S)
    random.seed(0)
    try:
        exec(compile(one["test"], "test.py", "exec"), space)
        random.seed(0)
        space["check"](candidate)
    finally:
        signal.alarm(0)


def too_long(*_: object) -> None:
    """Ends tests that take too long."""
    raise TimeoutError(f"the tests did not end within {CHECK_S} s")


def replay(calls: list[object], results: list[dict[str, Any]]) -> Callable[..., object]:
    """A function that answers the recorded calls, in order, with the results."""
    remaining = iter(list(zip(calls, results, strict=True)))

    def replayed(*arguments: object, **named: object) -> object:
        call, result = next(remaining, (None, {}))
        if call != call_of(arguments, named):
            raise OutOfStep("the tests made another call than with the solution")
        if "value" not in result:
            raise RuntimeError(result["why"])
        return decode(result["value"])

    return replayed


def answer(work: dict[str, Any], say: Callable[[object], None]) -> None:
    """Runs one answer on the calls, and says the outcome of each as it comes."""
    space: dict[str, Any] = {"__name__": "answer"}
    sys.modules["answer"] = type(sys)("answer")
    try:
        exec(compile(work["program"], "answer.py", "exec"), space)
        function = space[work["entry_point"]]
    except KeyError:
        say({"why": "the answer defines no " + work["entry_point"]})
        return
    except BaseException as error:
        say({"why": "the answer cannot be loaded: " + describe(error)})
        return
    for number, (arguments, named) in enumerate(work["calls"]):
        try:
            given, keyed = decode(arguments), decode(named)
            assert isinstance(given, tuple)
            assert isinstance(keyed, dict)
            say({"call": number, "value": encode(function(*given, **keyed))})
        except BaseException as error:
            say({"call": number, "why": describe(error)})


def describe(error: BaseException) -> str:
    """An exception in one line; one that cannot be described is said to be so."""
    try:
        return " ".join((type(error).__name__ + ": " + str(error)).split())[:300]
    except BaseException:
        return "an exception that cannot be described"


def main() -> None:
    leave, write = os._exit, os.write
    work = json.loads(sys.stdin.buffer.read())
    out = os.dup(1)
    null = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    dumps = json.dumps

    def say(said: object) -> None:
        data = ("\n" + dumps(said) + "\n").encode()
        while data:
            data = data[write(out, data) :]

    if sys.argv[1] == "answer":
        answer(work, say)
    else:
        say({"record": record, "check": check}[sys.argv[1]](work))
    leave(0)


if __name__ == "__main__":
    main()
