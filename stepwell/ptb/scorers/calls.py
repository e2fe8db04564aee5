"""Exact equality of one function call.

The answer is one block `<tool_call>{"name": …, "arguments": {…}}</tool_call>`; two blocks, or a block left open, are no
call. Calls are equal if they name the same function and the same arguments, in any order, with equal values:

- a list and a tuple are equal if their elements are: JSON has no tuples;
- numbers are equal by value and exactly: 5 is 5.0; but where the function's schema says integer, 5.0 is not 5;
- True is not 1, "5" is not 5, and texts are equal letter by letter;
- an argument too many is wrong, even one that repeats a default.
"""

import json
import re
from collections.abc import Mapping

from stepwell.ptb.item import CallGold
from stepwell.ptb.scorers.worth import Scored

_BLOCK = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)


class NoCall(ValueError):
    """An answer holds no call, or not exactly one."""


def score_call(answer: str, gold: CallGold) -> Scored:
    """1 if the answer is exactly the gold call, else 0 with the reason."""
    try:
        name, arguments = _call_in(answer)
    except NoCall as error:
        return Scored(0.0, str(error))
    if name != gold.function:
        return Scored(0.0, f"calls {name!r}, wanted {gold.function!r}")
    wanted = dict(gold.arguments)
    if arguments.keys() != wanted.keys():
        return Scored(0.0, f"arguments {sorted(arguments)}, wanted {sorted(wanted)}")
    for key, value in wanted.items():
        if not equal_values(arguments[key], value, integers=key in gold.integers):
            return Scored(0.0, f"{key} is {str(arguments[key])[:80]!r}, wanted {value!r}")
    return Scored(1.0, "equal")


def equal_values(found: object, wanted: object, *, integers: bool = False) -> bool:
    """Whether two values of arguments are equal, as the module says.

    Args:
        found: Of the answer.
        wanted: The gold one.
        integers: The numbers in it are declared as integers.
    """
    if isinstance(wanted, bool) or isinstance(found, bool):
        return isinstance(wanted, bool) and isinstance(found, bool) and found == wanted
    if isinstance(wanted, int | float) and isinstance(found, int | float):
        return found == wanted and not (integers and isinstance(wanted, int) and isinstance(found, float))
    if isinstance(wanted, list | tuple) and isinstance(found, list | tuple):
        return len(found) == len(wanted) and all(  # pyright: ignore[reportUnknownArgumentType]  # whatever JSON holds
            equal_values(one, other, integers=integers) for one, other in zip(found, wanted, strict=True)
        )
    if isinstance(wanted, dict) and isinstance(found, dict):
        return found.keys() == wanted.keys() and all(
            equal_values(found[key], value, integers=integers) for key, value in wanted.items()
        )
    return type(found) is type(wanted) and found == wanted


def _call_in(answer: str) -> tuple[str, Mapping[str, object]]:
    blocks = _BLOCK.findall(answer)
    if len(blocks) != 1 or answer.count("<tool_call>") != 1:
        raise NoCall(f"{answer.count('<tool_call>')} calls, wanted one")
    try:
        call: object = json.loads(blocks[0], object_pairs_hook=_without_doubles, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise NoCall(f"the call is no JSON: {error}") from error
    if not isinstance(call, dict) or call.keys() != {"name", "arguments"}:
        raise NoCall("the call is no object of name and arguments")
    name, arguments = call["name"], call["arguments"]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise NoCall("the name is no text, or the arguments are no object")
    return name, {str(key): value for key, value in arguments.items()}  # pyright: ignore[reportUnknownVariableType]


def _without_doubles(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _no_number(constant: str) -> object:
    raise ValueError(f"{constant} is no JSON number")
