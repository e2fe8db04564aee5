"""The issue text of a defect, from what failed. Pure."""

import ast
import re
import textwrap

_PLACE = re.compile(r"(?P<path>[^:]+):(?P<line>\d+): (?P<message>.*)", re.DOTALL)


def issue_text(module: str, function: str, tests: dict[str, str], details: list[str]) -> str:
    """What the agent is told.

    Args:
        module: Dotted name of the module with the defect.
        function: Qualified name of the function in it.
        tests: Path to source of the test files.
        details: What the runner said of each test that failed, as `file:line: exception`.
    """
    parts = [f"`{module}.{function}` does not do what its documentation says."]
    for detail in details:
        place = _PLACE.fullmatch(detail)
        if place is None or place["path"] not in tests:
            continue
        statement = statement_at(tests[place["path"]], int(place["line"]))
        if statement is None:
            continue
        message = place["message"].strip()
        outcome = "this fails" if message.startswith(("AssertionError", "assert")) else f"this ends with `{message}`"
        parts.append(f"For example, {outcome}:\n\n{textwrap.indent(statement, '    ')}")
        break
    parts.append("Find the defect and repair it.")
    return "\n\n".join(parts)


def statement_at(source: str, line: int) -> str | None:
    """Text of the innermost statement that covers a line, if it is a simple one, without its indentation."""
    innermost: ast.stmt | None = None
    for node in ast.walk(ast.parse(source)):  # Outer before inner.
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
            innermost = node
    if not isinstance(innermost, ast.Assert | ast.Expr | ast.Assign):
        return None
    lines = source.splitlines()[innermost.lineno - 1 : innermost.end_lineno]
    return textwrap.dedent("\n".join(lines))
