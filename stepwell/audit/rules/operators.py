"""What operators did, they might do: each act says who asked, as the server noted it, why, and what its action takes.

What follows from acts is held by the rules `settings`, `skips`, `gates`, `budgets` and `ending`.
"""

from pydantic import ValidationError

from stepwell.audit.finding import Finding, Tally
from stepwell.audit.record import RunRecord
from stepwell.contracts.operators import LimitNote, OperatorNote, SkipNote
from stepwell.events import OperatorActed
from stepwell.operators.fold import NOTES

HOLDS = "each act of an operator has a sender and a reason, and asks for what can be asked of this run"
UNIT = "acts"

NEEDS_NO_REASON = frozenset({"resume"})


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule to each act."""
    stream = record.operators.name
    for seq, act in record.operators.every(OperatorActed):
        tally.expect(bool(act.who.strip()), stream, seq, f"{act.action} by nobody")
        if not act.reason.strip() and act.action not in NEEDS_NO_REASON:
            tally.findings.append(Finding(stream, seq, f"{act.action} by {act.who} without a reason"))
        try:
            note = NOTES[act.action](reason=act.reason, **act.arguments)  # pyright: ignore[reportArgumentType]
        except (ValidationError, TypeError) as error:
            tally.findings.append(Finding(stream, seq, f"{act.action} cannot be asked with {act.arguments}: {error}"))
            continue
        why = _why_not(record, note)
        if why:
            tally.findings.append(Finding(stream, seq, why))


def _why_not(record: RunRecord, note: OperatorNote) -> str:
    """Why such a thing cannot be asked of the run; empty if it can."""
    if isinstance(note, LimitNote) and note.value is not None and note.value <= 0:
        return f"limit {note.limit} = {note.value:g}: a limit is above 0, or none"
    if isinstance(note, SkipNote) and record.recipe is not None:
        step, run = record.steps.get(note.step), record.recipe.run
        prompts = run.prompts_per_step + (len(step.replacements) if step else 0)
        if not (0 <= note.step < run.max_steps and 0 <= note.prompt < prompts):
            return (
                f"skips prompt {note.prompt} of step {note.step}; there are steps 0 to {run.max_steps - 1}, and "
                f"prompts 0 to {prompts - 1}"
            )
    return ""
