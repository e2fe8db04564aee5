"""A run's page in the Temporal UI, in Markdown: lists, since the UI shows no tables."""

from collections.abc import Sequence

from stepwell.contracts.operators import OperatorFold
from stepwell.contracts.run import Progress, RunPlan, Usage, ValidationScore


def run_page(
    run: str,
    plan: RunPlan,
    progress: Progress,
    scores: Sequence[ValidationScore],
    engines: Sequence[str],
    operators: OperatorFold,
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
    rows += [("Used", usage) for usage in _used(progress.usage, {**plan.limits, **operators.limits})]
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


def _used(usage: Usage | None, limits: dict[str, float | None]) -> list[str]:
    if usage is None:
        return []
    told: list[str] = []
    for name, value in usage.model_dump().items():
        limit = limits.get(name)
        bound = "" if limit is None else f" of {limit:,g}"
        told.append(
            f"{value:,.2f}{bound} {name.replace('_', ' ')}"
            if isinstance(value, float)
            else f"{value:,}{bound} {name.replace('_', ' ')}"
        )
    return [", ".join(told)]
