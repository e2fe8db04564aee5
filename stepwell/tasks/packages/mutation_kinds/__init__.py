"""Kinds of defects that people make: a name, the nodes it applies to, and a pure function from node to edits."""

from stepwell.tasks.packages.mutation_kinds.calls import CALL_KINDS
from stepwell.tasks.packages.mutation_kinds.expressions import EXPRESSION_KINDS
from stepwell.tasks.packages.mutation_kinds.kind import Kind
from stepwell.tasks.packages.mutation_kinds.statements import STATEMENT_KINDS

KINDS: tuple[Kind, ...] = (*EXPRESSION_KINDS, *CALL_KINDS, *STATEMENT_KINDS)

__all__ = ["KINDS", "Kind"]
