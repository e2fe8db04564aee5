"""What a kind of defect is."""

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from stepwell.tasks.packages.source_text import Edit, SourceText

Rule = Callable[[ast.AST, SourceText], Iterable[Edit]]
"""The edits of one node, in a fixed order; none where it does not apply."""


@dataclass(frozen=True)
class Kind:
    """One kind of defect."""

    name: str
    rule: Rule
