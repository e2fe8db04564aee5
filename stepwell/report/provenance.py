"""Where the last score comes from, as a picture to click through: versions in a line, and trees that unfold.

Without a script and without a network: a link in the picture leads to what it shows, which unfolds by itself.
"""

from html import escape

from stepwell.audit.provenance.node import EventMark, Node
from stepwell.audit.provenance.overview import GroupGlance, Overview, VersionGlance
from stepwell.audit.provenance.tree import Branch, More

_STEP_PX, _ROW_PX, _LEFT_PX = 50, 116, 26
"""Between versions; height of a row; before the first."""
_PER_ROW = 13
"""Versions in a row of the picture: as many as fit on paper."""


def provenance_section(overview: Overview) -> str:
    """The section of the page."""
    explanation = overview.explanation
    root = explanation.node
    omitted = (
        f"<p class='soft'>{overview.omitted:,} earlier versions are in the ledger.</p>" if overview.omitted else ""
    )
    trees = "".join(
        f'<h3>{title}</h3><div class="tree">{_branches(branch)}</div>'
        for title, branch in (("It came from", explanation.causes), ("What came of it", explanation.effects))
        if branch.below
    )
    return (
        f'<p>{_name(root)} {escape(root.title)} <span class="soft mono">{_where(root)}</span></p>'
        f'<div class="wide">{_picture(overview)}</div>'
        "<p class='soft'>Each circle is a weight version, filled where it was validated; above it stand its score and "
        "the mean reward of the batch that it was trained on. A click shows that batch. Each line names an event by "
        "which it can be checked; <code>stepwell audit explain</code> takes each name.</p>"
        f"{omitted}{''.join(_version(glance) for glance in overview.versions)}{trees}"
    )


def _picture(overview: Overview) -> str:
    """The chain of versions, in rows."""
    glances = overview.versions
    rows = [glances[start : start + _PER_ROW] for start in range(0, len(glances), _PER_ROW)]
    width, height = _LEFT_PX * 2 + _STEP_PX * (min(len(glances), _PER_ROW) - 1), _ROW_PX * len(rows)
    drawn = "".join(_row(row, _ROW_PX * number) for number, row in enumerate(rows))
    return (
        f'<svg class="lineage" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="Weight versions {glances[0].number} to {glances[-1].number}">{drawn}</svg>'
    )


def _row(row: tuple[VersionGlance, ...], top: int) -> str:
    y = top + 68
    right = _LEFT_PX + _STEP_PX * (len(row) - 1)
    marks = "".join(_mark(glance, _LEFT_PX + _STEP_PX * place, y) for place, glance in enumerate(row))
    return f'<line class="link" x1="{_LEFT_PX}" y1="{y}" x2="{right}" y2="{y}"/>{marks}'


def _mark(glance: VersionGlance, x: int, y: int) -> str:
    """A version: circle, number, mean reward of its batch, score on the set `main`."""
    kind = "version" + (" validated" if glance.validations else "") + (" tainted" if glance.node.taint else "")
    reward = glance.batch.figures.get("reward_mean") if glance.batch else None
    score = next((node.figures.get("pass_k") for node in glance.validations if node.ref.parts[1] == "main"), None)
    above = f'<text class="middle" x="{x}" y="{y - 18}">{reward:.2f}</text>' if isinstance(reward, float) else ""
    if isinstance(score, float):
        above += f'<text class="middle score" x="{x}" y="{y - 38}">{score:.3f}</text>'
    title = escape(f"version {glance.number}: {glance.node.title}")
    return (
        f'<a href="#version-{glance.number}"><title>{title}</title><circle class="{kind}" cx="{x}" cy="{y}" r="9"/>'
        f'<text class="middle" x="{x}" y="{y + 27}">{glance.number}</text>{above}</a>'
    )


def _version(glance: VersionGlance) -> str:
    """A version with its batch, folded."""
    batch = f" · {escape(glance.batch.title)}" if glance.batch else ""
    scores = "".join(f"<p>{_line(node)}</p>" for node in glance.validations)
    batch_line = f"<p>{_line(glance.batch)}</p>" if glance.batch else ""
    groups = "".join(_group(group) for group in glance.groups)
    return (
        f'<details class="lineage-entry"><summary>version {glance.number}{batch}{_taint(glance.node)}</summary>'
        f'<div id="version-{glance.number}"><p>{_line(glance.node)}</p>{scores}{batch_line}'
        f'<ul class="groups">{groups}</ul></div></details>'
    )


def _group(group: GroupGlance) -> str:
    cells = "".join("–" if score is None else "●" if score > 0 else "○" for score in group.scores)
    return f'<li>{_line(group.node)} <span class="cells" title="solved, not solved, no score">{cells}</span></li>'


def _branches(branch: Branch) -> str:
    """What follows a thing; those with something below unfold, the first of them from the start."""
    parts: list[str] = []
    for below in branch.below:
        if isinstance(below, More):
            parts.append(f'<p class="leaf soft">{escape(below.words())}</p>')
            continue
        why = ", ".join(filter(None, (below.edge.why if below.edge else "", below.note)))
        is_same_event = below.node.events[:1] == branch.node.events[:1]
        line = _line(below.node, why, is_where_known=is_same_event)
        if below.below:
            parts.append(f"<details open><summary>{line}</summary>{_branches(below)}</details>")
        else:
            parts.append(f'<p class="leaf">{line}</p>')
    return f'<div class="below">{"".join(parts)}</div>'


def _line(node: Node, why: str = "", *, is_where_known: bool = False) -> str:
    reason = f' <span class="soft">· {escape(why)}</span>' if why else ""
    where = f' <span class="soft mono">{_where(node)}</span>' if node.events and not is_where_known else ""
    return f"{_name(node)} {escape(node.title)}{_taint(node)}{reason}{where}"


def _name(node: Node) -> str:
    return f"<b>{escape(node.ref.short)}</b>"


def _taint(node: Node) -> str:
    return f' <span class="outcome bad">tainted: {escape(node.taint)}</span>' if node.taint else ""


def _where(node: Node) -> str:
    return "" if not node.events else escape(_mark_words(node.events[0]))


def _mark_words(mark: EventMark) -> str:
    return f"{mark.stream} #{mark.seq} {mark.hash[:12]}"
