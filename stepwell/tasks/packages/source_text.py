"""A module's source as bytes, with the places of its tree in them, so that a change leaves all else as it was."""

import ast
import io
import tokenize
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Edit:
    """A replacement of one span of a source."""

    start: int
    """First byte replaced, in UTF-8."""
    end: int
    """First byte after it."""
    text: str
    """What stands there instead."""


@dataclass(frozen=True)
class Token:
    """One token and its bytes."""

    text: str
    start: int
    end: int


class SourceText:
    """A Python source.

    Raises:
        SyntaxError: it does not parse.
    """

    def __init__(self, source: str) -> None:
        self.tree = ast.parse(source)
        self.data = source.encode()
        self._lines = [line + "\n" for line in source.split("\n")]
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line.encode()))

    def start(self, node: ast.expr | ast.stmt | ast.ExceptHandler) -> int:
        """First byte of a node."""
        return self._starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt | ast.ExceptHandler) -> int:
        """First byte after a node."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None  # The parser sets them; only nodes made by hand lack them.
        return self._starts[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: ast.expr | ast.stmt) -> str:
        """A node as it is written."""
        return self.data[self.start(node) : self.end(node)].decode()

    def replace(self, node: ast.expr | ast.stmt, text: str) -> Edit:
        """The edit that writes `text` in place of a node."""
        return Edit(self.start(node), self.end(node), text)

    def can_take(self, edit: Edit) -> bool:
        """Whether an edit changes anything, and leaves as many brackets open as before: the place of a node is without
        those around it, so that an edit from one node to another may hold one half of a pair."""
        replaced = self.data[edit.start : edit.end].decode()
        return replaced != edit.text and _open_brackets(replaced) == _open_brackets(edit.text)

    def line_of(self, position: int) -> int:
        """Number of the line, from 1, that a byte is in."""
        return self.data.count(b"\n", 0, position) + 1

    def between(self, start: int, end: int) -> Iterator[Token]:
        """Tokens that lie in a span, comments and line breaks left out."""
        first = bisect_left(self._tokens, start, key=lambda token: token.start)
        for token in self._tokens[first:]:
            if token.end > end:
                return
            yield token

    @cached_property
    def _tokens(self) -> list[Token]:
        left_out = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
        return [
            Token(token.string, self._byte(*token.start), self._byte(*token.end))
            for token in tokenize.generate_tokens(io.StringIO("".join(self._lines), newline="").readline)
            if token.type not in left_out and token.string
        ]

    def _byte(self, line: int, column: int) -> int:
        return self._starts[line - 1] + len(self._lines[line - 1][:column].encode())


def _open_brackets(text: str) -> list[int]:
    return [text.count(opening) - text.count(closing) for opening, closing in ("()", "[]", "{}")]


def spliced(source: str, edit: Edit) -> str:
    """The source with the edit made, every other byte as it was."""
    data = source.encode()
    return (data[: edit.start] + edit.text.encode() + data[edit.end :]).decode()


def is_other_program(source: str, changed: str) -> bool:
    """Whether `changed` parses, and not to the same syntax tree as `source`."""
    try:
        return ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError):
        return False
