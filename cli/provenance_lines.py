"""An explanation in the terminal."""

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from stepwell.audit.provenance.node import EventMark
from stepwell.audit.provenance.tree import Branch, Explanation, More

_WIDE = 240
"""Columns where nobody looks: a line is one line for programs."""


def print_explanation(explanation: Explanation) -> None:
    """Prints a thing and its two trees."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_WIDE)
    console.print(_head(explanation))
    for title, branch in (("came from", explanation.causes), ("came of it", explanation.effects)):
        if branch.below:
            console.print(_tree(title, branch))
        else:
            console.print(Text(f"nothing {title}", style="dim"))


def _head(explanation: Explanation) -> Text:
    node = explanation.node
    text = Text.assemble((str(node.ref), "bold cyan"), "  ", (node.title, "bold"))
    _add_taint(text, node.taint)
    for name, value in node.figures.items():
        text.append(f"\n  {name} {value}", "dim")
    for mark in node.events:
        text.append(f"\n  {_where(mark)}", "dim")
    return text


def _tree(title: str, root: Branch) -> Tree:
    tree = Tree(Text(title, "bold"), guide_style="dim")
    _grow(tree, root)
    return tree


def _grow(tree: Tree, branch: Branch) -> None:
    for below in branch.below:
        if isinstance(below, More):
            tree.add(Text(below.words(), "dim"))
        else:
            _grow(tree.add(_line(below, branch)), below)


def _line(branch: Branch, above: Branch) -> Text:
    node, edge = branch.node, branch.edge
    text = Text.assemble((node.ref.short, "cyan"), "  ", node.title)
    _add_taint(text, node.taint)
    if edge is not None:
        text.append(f" · {edge.why}", "dim")
    if branch.note:
        text.append(f", {branch.note}", "dim")
    if node.events and node.events[:1] != above.node.events[:1]:
        text.append(f" · {_where(node.events[0])}", "dim")
    return text


def _add_taint(text: Text, why: str) -> None:
    if why:
        text.append(f"  tainted: {why}", "bold red")


def _where(mark: EventMark) -> str:
    return f"{mark.stream} #{mark.seq} {mark.hash[:12]}"
