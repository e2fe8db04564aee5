"""What was changed in a run, its operators changed: the settings of each step follow from the `set` acts.

Two streams have no common order, so what can be shown is this: the acts, applied one after the other, pass through the
settings of step 0, then of step 1, and so on, without going back.
"""

from collections.abc import Mapping, Sequence

from pydantic import ValidationError

from stepwell.audit.finding import Finding, Tally
from stepwell.audit.recipe import AuditedRecipe
from stepwell.audit.record import RunRecord
from stepwell.events import OperatorActed
from stepwell.recipe.live import check_setting

HOLDS = "the recipe can be read, and each step's settings are those that operators had set by then, in their order"
UNIT = "steps and settings"

Settings = Mapping[str, float | int]


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule to the recipe, to each `set` act, then to each step in order."""
    _check_recipe(record, tally)
    after = _after_each_act(record, tally)
    at = 0
    for step in sorted(record.steps.values(), key=lambda step: step.seq):
        settings = step.event.settings
        found = next((place for place in range(at, len(after)) if after[place] == settings), None)
        tally.expect(
            found is not None,
            record.run_events.name,
            step.seq,
            f"step {step.event.step} has the settings {_words(settings)}, {_wanted(settings, after, at)}",
        )
        at = at if found is None else found


def _check_recipe(record: RunRecord, tally: Tally) -> None:
    if record.created is None:
        return  # the rule `chains` says so
    try:
        AuditedRecipe.model_validate(record.created.recipe)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        what = f"its recipe cannot be read: {where}: {first['msg']}"
        tally.findings.append(Finding(record.run_events.name, 0, what))


def _after_each_act(record: RunRecord, tally: Tally) -> list[Settings]:
    """Settings before any act, and after each that can be."""
    after: list[Settings] = [{}]
    for seq, act in record.operators.every(OperatorActed):
        if act.action != "set":
            continue
        key, value = act.arguments.get("key"), act.arguments.get("value")
        try:
            if not isinstance(key, str) or not isinstance(value, int | float):
                raise ValueError(f"sets {key!r} to {value!r}, wanted a key and a number")
            after.append({**after[-1], key: check_setting(key, value)})
            tally.checked += 1
        except ValueError as error:
            tally.expect(False, record.operators.name, seq, str(error))
    return after


def _wanted(settings: Settings, after: Sequence[Settings], at: int) -> str:
    unset = [key for key in settings if not any(key in known for known in after)]
    if unset:
        return f"but no operator set {', '.join(unset)}"
    allowed = " or ".join(_words(known) for known in after[at : at + 3])
    return f"operators' acts up to then make it {allowed}" + (" or later ones" if len(after) > at + 3 else "")


def _words(settings: Settings) -> str:
    return ", ".join(f"{key} = {value:g}" for key, value in sorted(settings.items())) or "none"
