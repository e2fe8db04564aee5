"""The trials are those of the recipe, and each says so: nothing was added to the matrix, or left out of it."""

from stepwell.audit.finding import Finding, Tally
from stepwell.events.canonical import digest_of_json
from stepwell.events.streams import override_stream, trial_stream
from stepwell.ptb.trials.audited import AuditedTrial, RunSetRecord
from stepwell.ptb.trials.cells import TrialCell

HOLDS = "recipe and basis can be read, the trials are the recipe's matrix, and each begins as its cell"
UNIT = "trials"


def check(record: RunSetRecord, tally: Tally) -> None:
    """Applies the rule to the run set, then to each trial."""
    created, recipe = record.created, record.recipe
    if created is None:
        tally.findings.append(Finding(record.own, 0, "does not begin with a RunSetCreated"))
        return
    digest = digest_of_json(created.recipe)
    if digest != created.recipe_digest:
        tally.findings.append(
            Finding(record.own, 0, f"recipe_digest is {created.recipe_digest}, its recipe's {digest}")
        )
    if record.basis is None:
        tally.findings.append(Finding(record.own, 0, "its basis cannot be read"))
    if recipe is None:
        tally.findings.append(Finding(record.own, 0, "its recipe cannot be read"))
        return
    cells = {cell.name: cell for cell in recipe.cells()}
    if created.cells != list(cells):
        wrong = sorted(set(created.cells) ^ set(cells))
        what = f"its trials are not the recipe's: {', '.join(wrong) or 'another order'}"
        tally.findings.append(Finding(record.own, 0, what))
    for trial in record.trials:
        _check_trial(record, trial, cells.get(trial.cell), recipe.seed, tally)
    known = {trial_stream(record.name, cell) for cell in cells} | {override_stream(record.name, cell) for cell in cells}
    for kind in ("trial", "override"):
        for stream in record.stored.of_kind(kind):
            if stream.name not in known:
                tally.findings.append(Finding(stream.name, 0, "is of no trial of the run set"))


def _check_trial(record: RunSetRecord, trial: AuditedTrial, cell: TrialCell | None, seed: int, tally: Tally) -> None:
    tally.checked += 1
    if cell is None:
        return  # said above, of its stream
    assert record.created is not None
    said, wanted = (
        trial.created.model_dump(exclude={"type"}),
        {
            "cell": cell.name,
            "recipe_digest": record.created.recipe_digest,
            "role": cell.role,
            "agent": cell.agent,
            "base_model": cell.base_model,
            "benchmark": cell.benchmark,
            "repetition": cell.repetition,
            "seed": cell.seed(seed),
        },
    )
    for name, value in wanted.items():
        if said[name] != value:
            tally.findings.append(Finding(trial.name, 0, f"{name} is {said[name]}, its cell makes it {value}"))
