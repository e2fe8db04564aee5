"""R1 to R4: whether a stranger can review this at all.

Grades: Full if everything is there for every trial; Inadequate if something that no review can do without is missing
for a fifth of the score, or a secret survives, or scoring again gives something else; else Partial.
"""

from collections.abc import Callable, Mapping, Sequence

from stepwell.ptb.review.criteria import CRITERIA
from stepwell.ptb.review.deciding import BAR, Case, fine, noted, share_of, told, unknown, wrong
from stepwell.ptb.review.finding import Finding, Grade, Standing
from stepwell.ptb.review.record import Trial
from stepwell.ptb.review.subject import Subject, needs_judge, short
from stepwell.ptb.review.trial_record import Limits, TrialRecord

Field = Callable[[TrialRecord], object]
"""What a trial's record says; None or False where it says nothing."""


def _of_limits(name: str) -> Field:
    return lambda record: getattr(record.limits or Limits(), name)


def _scored_with(name: str) -> Field:
    return lambda record: record.scored_with and getattr(record.scored_with, name)


WHAT_WAS_RUN: Mapping[str, Field] = {
    "prompt": lambda record: record.prompt,
    "rules": lambda record: record.rules,
    "scaffold": lambda record: record.scaffold,
    "scaffold_version": lambda record: record.scaffold_version,
    "command": lambda record: record.command,
    "model_asked": lambda record: record.model_asked,
    "model_resolved": lambda record: record.model_resolved,
    "effort": lambda record: record.effort,
    "temperature": lambda record: record.temperature is not None,
    "limits.hours": _of_limits("hours"),
    "limits.tokens": _of_limits("tokens"),
    "limits.turns": _of_limits("turns"),
    "limits.money": _of_limits("money"),
    "tools": lambda record: record.tools is not None,
    "network": lambda record: record.network,
    "hardware.checked": lambda record: record.hardware and record.hardware.checked,
    "container": lambda record: record.container,
    "packages": lambda record: record.packages,
    "scored_with.data": _scored_with("data"),
    "scored_with.scorer": _scored_with("scorer"),
    "scored_with.template": _scored_with("template"),
    "scored_with.environment": _scored_with("environment"),
}
WHAT_HAPPENED: Mapping[str, Field] = {
    "trace_raw": lambda record: record.trace_raw,
    "trace_parsed": lambda record: record.trace_parsed,
    "trace_stamped": lambda record: record.trace_stamped,
    "secrets": lambda record: record.secrets,
    "workspace": lambda record: record.workspace,
    "model_configuration": lambda record: record.model_configuration,
    "weights": lambda record: record.weights,
    "items": lambda record: record.items,
    "exchanges": lambda record: record.exchanges,
    "resources": lambda record: record.resources,
}
VITAL = {"prompt", "command", "model_resolved", "limits.hours", "network", "trace_raw", "items", "weights"}
"""Without these nobody can tell what was run, what it did, or what was scored."""
_OF_A_MODEL = {"model_configuration", "weights", "items"}
"""There are none where the trial left no model."""


def reviewability(subject: Subject) -> list[Finding]:
    """R1 to R4."""
    return [_run(subject), _kept(subject), _again(subject), _prompt(subject)]


def worst(grades: Sequence[str]) -> Grade:
    """The grade of all."""
    if "Inadequate" in grades:
        return "Inadequate"
    return "Partial" if "Partial" in grades else "Full"


def _run(subject: Subject) -> Finding:
    cases = [case for trial in subject.trials for case in _lacking(trial, WHAT_WAS_RUN)]
    for trial in subject.trials:
        judged = needs_judge(trial.cell.benchmark)
        with_judge = trial.record.scored_with and trial.record.scored_with.judge
        if judged and not with_judge:
            cases.append(unknown(trial.cell.trial, trial.weight, "scored_with.judge"))
    looked_at = f"{len(WHAT_WAS_RUN)} fields of {_trials(subject)}"
    return _graded("R1", looked_at, cases, inadequate=_vital_lacking(cases))


def _kept(subject: Subject) -> Finding:
    cases = [case for trial in subject.trials for case in _lacking(trial, WHAT_HAPPENED)]
    outlived = [each for each in subject.trials if each.record.secrets and each.record.secrets.survivors]
    cases += [wrong(each.cell.trial, each.weight, "a secret outlived redaction") for each in outlived]
    looked_at = f"{len(WHAT_HAPPENED)} fields of {_trials(subject)}"
    return _graded("R2", looked_at, cases, inadequate=_vital_lacking(cases) or bool(outlived))


def _again(subject: Subject) -> Finding:
    cases: list[Case] = []
    for key, setup in subject.setups.items():
        absent = [name for name in ("scoring_code", "rescore_command") if getattr(setup, name) is None]
        cases += [unknown(short(key), 1.0, name) for name in absent]
        missing = sorted(subject.bases[key].weights.keys() - (setup.test_data or {}).keys())
        if missing:
            cases.append(unknown(short(key), 1.0, f"test_data of {', '.join(missing)}"))
        again = [each for each in subject.trials if each.cell.basis == key and each.record.rescored_equal is not None]
        if not any(each.record.rescored_equal for each in again):
            cases.append(unknown(short(key), 1.0, "a trial that was scored again and gave the same"))
        for each in again:
            case = fine if each.record.rescored_equal else wrong
            said = "the same to the bit" if each.record.rescored_equal else "something else"
            cases.append(case(each.cell.trial, each.weight, f"scored again it gave {said}"))
    no_code = any(setup.scoring_code is None for setup in subject.setups.values())
    differs = any(each.kind == "wrong" for each in cases)
    looked_at = f"{len(subject.setups)} keys and {_trials(subject)}: code, files, and what was scored again"
    return _graded("R3", looked_at, cases, inadequate=no_code or differs)


def _prompt(subject: Subject) -> Finding:
    cases = [case for trial in subject.trials for case in _statements(trial)]
    count = sum(len(each.record.statements or ()) for each in subject.trials)
    return _graded("R4", f"{count} statements in the prompts of {_trials(subject)}", cases, inadequate=False)


def _statements(trial: Trial) -> list[Case]:
    name, weight, record = trial.cell.trial, trial.weight, trial.record
    if record.statements is None:
        return [unknown(name, weight, "what the prompt says of its surroundings")]
    cases = [fine(name, weight)]
    for each in record.statements:
        enforced = _enforced(each.about, record)
        if each.claims is not None and each.about in ("internet", "time"):
            if enforced is None:
                cases.append(unknown(name, weight, f"what was enforced where the prompt says {each.says!r}"))
            elif enforced != each.claims:
                cases.append(wrong(name, weight, f"the prompt says {each.says!r}, and enforced was {enforced}"))
        elif each.holds is None:
            cases.append(unknown(name, weight, f"whether it holds that {each.says!r}"))
        elif not each.holds:
            cases.append(wrong(name, weight, f"the prompt says {each.says!r}, and it was not so"))
    if not record.statements:
        cases.append(noted(name, "the prompt says nothing of its surroundings"))
    return cases


def _enforced(about: str, record: TrialRecord) -> str | float | None:
    if about == "internet":
        return None if record.network is None else record.network.mode
    return None if record.limits is None else record.limits.hours


def _lacking(trial: Trial, fields: Mapping[str, Field]) -> list[Case]:
    """What is missing of a trial; a single case that is fine if nothing is."""
    skipped = _OF_A_MODEL if trial.cell.failure is not None else set[str]()
    names = [name for name, field in fields.items() if name not in skipped and not field(trial.record)]
    lacking = [unknown(trial.cell.trial, trial.weight, name) for name in names]
    return lacking or [fine(trial.cell.trial, trial.weight)]


def _vital_lacking(cases: Sequence[Case]) -> bool:
    return share_of(each for each in cases if each.kind == "unknown" and each.says in VITAL) >= BAR


def _graded(identity: str, looked_at: str, cases: Sequence[Case], *, inadequate: bool) -> Finding:
    kinds = {each.kind for each in cases}
    grade: Grade = "Partial" if kinds & {"wrong", "unknown"} or not cases else "Full"
    standing = Standing.PASS
    if inadequate or "wrong" in kinds:
        standing = Standing.FLAGGED
    elif grade == "Partial":
        standing = Standing.UNKNOWN
    return Finding(
        id=identity,
        group=CRITERIA[identity].group,
        title=CRITERIA[identity].title,
        looked_at=looked_at,
        standing=standing,
        label="Inadequate" if inadequate else grade,
        share=share_of(each for each in cases if each.kind != "fine"),
        evidence=told(cases),
        would_change=CRITERIA[identity].would_change[standing],
    )


def _trials(subject: Subject) -> str:
    return f"{len(subject.trials)} trials"
