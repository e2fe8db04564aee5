"""The program in an answer."""

import ast
import re

from stepwell.ptb.item import ProgramGold

_BLOCK = re.compile(r"```[ \t]*(?:python|py|python3)?[ \t]*\r?\n(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)


def program_in(answer: str, gold: ProgramGold) -> str:
    """Source of the whole program: the first code block that defines the function, else the first block, else all of
    the answer. What defines the function stands after the prompt's own imports and functions; what does not is taken
    to continue the prompt."""
    blocks: list[str] = [match[1] for match in _BLOCK.finditer(answer)]
    defining = [block for block in blocks if _defines(block, gold.entry_point)]
    code = (defining or blocks or [answer])[0]
    if _defines(code, gold.entry_point):
        return f"{_before(gold)}\n{code}\n"
    return f"{gold.prompt}{code}\n"


def _defines(code: str, function: str) -> bool:
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return re.search(rf"^(?:async )?def {re.escape(function)}\b", code, re.MULTILINE) is not None
    return any(
        (isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == function)
        or (isinstance(node, ast.Assign) and any(isinstance(to, ast.Name) and to.id == function for to in node.targets))
        for node in tree.body
    )


def _before(gold: ProgramGold) -> str:
    """The prompt up to the function that it asks for."""
    return gold.prompt.rpartition(f"def {gold.entry_point}(")[0]
