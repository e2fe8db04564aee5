"""A run's page in the Temporal UI, in Markdown: lists, since the UI shows no tables."""

from collections.abc import Mapping, Sequence

from stepwell.contracts.operators import OperatorFold
from stepwell.contracts.run import Progress, RunPlan, Usage, ValidationScore
from stepwell.health.usage import usage_words


def run_page(
    run: str,
    plan: RunPlan,
    progress: Progress,
    scores: Sequence[ValidationScore],
    engines: Sequence[str],
    operators: OperatorFold,
    last_event: str,
) -> str:
    """The page of a run as it stands."""
    rows = [
        ("State", progress.state),
        ("Waits for", progress.waiting_for),
        ("Step", f"{progress.generating} of {plan.max_steps} being generated, {progress.training} being trained"),
        ("Open groups", str(progress.open_groups)),
        (
            "Weight version",
            f"{progress.version} newest, {progress.serving} served by {', '.join(engines) or 'no engine'}",
        ),
    ]
    if operators.depth is not None:
        rows.append(("Pause", f"{operators.depth}; the Update `resume` ends it"))
    if operators.settings:
        rows.append(("Set", ", ".join(f"`{key}` = {value:g}" for key, value in operators.settings.items())))
    rows += _budgets(progress.usage, {**plan.limits, **operators.limits})
    rows.append(("Last event", last_event or "none since this history began"))
    lines = [f"## {run}", "", *(f"- **{name}**: {value}" for name, value in rows)]
    if operators.holds:
        lines += ["", "### An operator is asked", ""]
        lines += [f"- `{hold.hold}`: {hold.cause}. {_answer(hold.hold)}" for hold in operators.holds]
    if progress.stalls:
        lines += ["", "### Stalls", "", *(f"- **{stall.what}**: {stall.cause}" for stall in progress.stalls)]
    if scores:
        lines += ["", "### Validations (newest last)", ""]
        lines += [
            f"- version {score.version} on {score.dataset}: pass@1 **{score.pass_1:.3f}**, "
            f"pass@{score.k} **{score.pass_k:.3f}**"
            for score in scores
        ]
    return "\n".join(lines)


def _answer(hold: str) -> str:
    if hold.startswith("limit/"):
        name = hold.removeprefix("limit/")
        return f'Send the Update `limit` with `{{"limit": "{name}", "value": …, "reason": …}}`'
    return f'Send the Update `approve` or `reject` with `{{"gate": "{hold}", "reason": …}}`'


def _budgets(usage: Usage | None, limits: Mapping[str, float | None]) -> list[tuple[str, str]]:
    """What was used, and what may be."""
    rows = [("Used", usage_words(usage, limits))] if usage is not None else []
    bounds = [f"{value:,.10g} {name.replace('_', ' ')}" for name, value in limits.items() if value is not None]
    return [*rows, ("Limits", ", ".join(bounds) or "none")]
