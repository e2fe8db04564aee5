"""The page at the end of a run: one HTML file that needs no network, reads without a script, and prints.

A transcript's text can load and run nothing (`document`).
"""

from collections.abc import Sequence
from html import escape

from stepwell.audit.provenance.overview import Overview
from stepwell.health.usage import amount_words
from stepwell.report.budgets import budgets_table
from stepwell.report.cover import TimeSplit
from stepwell.report.curves import curves
from stepwell.report.digests import short_digests
from stepwell.report.document import document
from stepwell.report.examples import Transcript
from stepwell.report.failures import disturbances_table, ends_table, failures_table
from stepwell.report.fate_tables import fates_table, lengths_table
from stepwell.report.operator_table import operators_table
from stepwell.report.picture import RunPicture
from stepwell.report.provenance import provenance_section
from stepwell.report.tables import (
    moment,
    recipe_lines,
    steps_table,
    validations_table,
)
from stepwell.report.time_chart import time_figure
from stepwell.report.transcript_html import transcript
from stepwell.report.verified import Verified, verified_line, verified_section
from stepwell.report.worker_chart import worker_figure

_ENDS = {
    "target": ("good", "Reached its target"),
    "max_steps": ("", "Did its last step"),
    "stopped": ("", "Stopped by an operator"),
    "failed": ("bad", "Failed"),
}


def render_page(
    picture: RunPicture,
    transcripts: Sequence[Transcript] = (),
    provenance: Overview | None = None,
    verified: Verified | None = None,
) -> str:
    """The whole page.

    Args:
        picture: Of the run, finished or not.
        transcripts: Rollouts to show as examples.
        provenance: Where its last score comes from.
        verified: What an audit said of it just now, if there was one.
    """
    header = f"""<h1>{escape(picture.run)}</h1>
{_lead(picture, verified)}{_tainted(provenance)}
{_numbers(picture)}"""
    main = f"""<h2>Learning</h2>
<div class="charts">{"".join(chart.figure() for chart in curves(picture))}</div>
<h2>Validations</h2>
<div class="panel">{validations_table(picture)}</div>
<h2>Where the time went</h2>
<div class="panel">{_time(picture)}</div>
<h2>Rollouts by worker</h2>
<div class="panel">{worker_figure(picture)}</div>
<h2>Prompts and their fates</h2>
<div class="panel">{fates_table(picture)}{ends_table(picture)}{lengths_table(picture)}</div>
<h2>Failures and recoveries</h2>
<div class="panel">{failures_table(picture)}<p class="soft">{_work(picture)}</p>{_each(picture)}</div>
<h2>Budgets</h2>
<div class="panel">{budgets_table(picture)}</div>
<h2>What operators did</h2>
<div class="panel">{operators_table(picture)}</div>
{_transcripts(transcripts)}
{_provenance(provenance)}
<h2 id="verified">How it was verified</h2>
<div class="panel">{verified_section(picture.run, picture.head_seq, picture.head_hash, verified)}</div>
<h2>Details</h2>
<details><summary>Every step</summary>{steps_table(picture)}</details>
<details><summary>Resolved recipe</summary><pre>{escape(recipe_lines(picture.recipe))}</pre></details>"""
    return document(picture.run, header=header, main=main, footer=_footer(picture))


def _lead(picture: RunPicture, verified: Verified | None) -> str:
    kind, words = ("", "Not finished")
    if picture.finished is not None:
        kind, words = _ENDS[picture.finished.end]
        if picture.finished.cause:
            words += f": {picture.finished.cause}"
    parts = [f'<span class="outcome {kind}">{escape(words)}</span>']
    if picture.recipe_name:
        parts.append(f"recipe {escape(picture.recipe_name)}")
    if picture.created_s is not None:
        parts.append(f"begun {moment(picture.created_s)} UTC")
    parts.append(verified_line(verified))
    return f'<p class="lead">{" · ".join(parts)}</p>'


def _numbers(picture: RunPicture) -> str:
    """The figures that a reader looks for first."""
    split, done, tokens = picture.time_split(), picture.done_steps, picture.rollouts.tokens.total
    boxes = [_pass_box(picture), ("Steps", str(len(done)), f"of {picture.max_steps}" if picture.max_steps else "")]
    if picture.warm_up is not None:
        boxes.append(("Version 0", f"{picture.warm_up.duration_s / 60:.1f} min", short_digests(picture.warm_up.origin)))
    if split is not None:
        boxes.append(("Reinforcement", f"{split.wall_s / 60:.1f} min", "wall clock"))
        boxes.append(("Overhead", f"{split.overhead:.1%}", f"{split.overhead_s:.0f} s with nothing under way"))
        rate = tokens / split.wall_s if split.wall_s else 0.0
        boxes.append(("Generated tokens", f"{tokens:,}", f"{rate:,.0f} a second"))
    mismatches = [step.mismatch_mean for step in done if step.mismatch_mean is not None]
    if mismatches:
        bound = (
            f"largest of a step, bound {picture.mismatch_bound:g}" if picture.mismatch_bound else "largest of a step"
        )
        boxes.append(("|Δlog-prob| mean", f"{max(mismatches):.1e}", bound))
    usage = picture.standing.usage
    if usage is not None:
        held = f"sandboxes held for {amount_words(usage.sandbox_minutes)} minutes"
        boxes.append(("GPU-hours", amount_words(usage.gpu_hours), held))
    lost = len(picture.recoveries)
    boxes.append(("Recoveries", str(lost), f"{picture.rollouts.failed} rollouts failed"))
    cells = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}<small>{escape(note)}</small></dd></div>"
        for name, value, note in boxes
    )
    return f'<dl class="numbers">{cells}</dl>'


def _pass_box(picture: RunPicture) -> tuple[str, str, str]:
    results = picture.results("main")
    if not results:
        return "pass@k", "–", "no validation yet"
    first, last = results[0], results[-1]
    value = f"{last.pass_k:.3f}" if last is first else f"{first.pass_k:.3f} → {last.pass_k:.3f}"
    note = f"target {picture.target:g}, {last.tasks or '?'} tasks" if picture.target else f"{last.tasks or '?'} tasks"
    return f"pass@{last.k}", value, note


def _time(picture: RunPicture) -> str:
    split = picture.time_split()
    if split is None:
        return "<p>The reinforcement part has not begun.</p>"
    return f"{time_figure(picture)}<p class='soft'>{escape(_time_words(split))}</p>"


def _time_words(split: TimeSplit) -> str:
    words = (
        f"Of {split.wall_s:.0f} s from the first dispatch to the end, {split.overhead_s:.0f} s ({split.overhead:.1%}) "
        "were overhead: nothing was generated, run, tested, trained or loaded. Activities overlap, so their shares add "
        "up to more than what any of them covers."
    )
    return words + (f" The longest such stretch was {split.longest_idle_s:.0f} s." if split.longest_idle_s > 10 else "")


def _work(picture: RunPicture) -> str:
    words = picture.recovery_work.words()
    return escape(f"{words[0].upper()}{words[1:]}.")


def _each(picture: RunPicture) -> str:
    listed = disturbances_table(picture)
    return f"<details><summary>One by one</summary>{listed}</details>" if listed else ""


def _transcripts(transcripts: Sequence[Transcript]) -> str:
    if not transcripts:
        return ""
    return f"<h2>What the policy did</h2>{''.join(transcript(shown) for shown in transcripts)}"


def _provenance(overview: Overview | None) -> str:
    if overview is None:
        return ""
    return f'<h2>Where the last score comes from</h2><div class="panel">{provenance_section(overview)}</div>'


def _tainted(overview: Overview | None) -> str:
    if overview is None or not overview.taint.marks:
        return ""
    return f'<p class="outcome bad">{escape(overview.taint.words())}.</p>'


def _footer(picture: RunPicture) -> str:
    as_of = f" as of {moment(picture.newest_s)} UTC" if picture.newest_s is not None else ""
    return (
        f"<p>Written by Stepwell from the ledger{as_of}. Head of <span class='mono'>run/{escape(picture.run)}</span> "
        f"#{picture.head_seq}: <span class='mono'>{picture.head_hash}</span>.</p>"
    )
