"""Agents on a cell are told the same, but for what the recipe or their scaffold declares."""

from stepwell.audit.finding import Finding, Tally
from stepwell.events import TrialPrepared
from stepwell.events.canonical import digest_of_json
from stepwell.ptb.scaffolds import scaffold
from stepwell.ptb.trials.audited import AuditedTrial, RunSetRecord

HOLDS = (
    "agents on a base model and benchmark with equal budgets have one prompt, and what one is told beyond it is its "
    "scaffold's declared addition"
)
UNIT = "prompts"


def check(record: RunSetRecord, tally: Tally) -> None:
    """Applies the rule to each prompt; the first on a cell is the measure of the others."""
    if record.recipe is None:
        return  # the rule `cells` says so
    first: dict[tuple[object, ...], tuple[str, AuditedTrial]] = {}
    for trial in record.trials:
        for seq, prepared in trial.stream.every(TrialPrepared) if trial.agent is not None else ():
            assert trial.agent is not None  # the loop has nothing otherwise
            budgets = (record.recipe.hours_of(trial.agent), trial.agent.tokens, trial.agent.money)
            digest, other = first.setdefault((*trial.place, *budgets), (prepared.prompt_digest, trial))
            what = f"its prompt has the digest {prepared.prompt_digest}, that of {other.cell} {digest}"
            tally.expect(prepared.prompt_digest == digest, trial.name, seq, what)
            _check_text(record, trial, seq, prepared, tally)


def _check_text(record: RunSetRecord, trial: AuditedTrial, seq: int, prepared: TrialPrepared, tally: Tally) -> None:
    blob = record.stored.documents.get(prepared.prompt)
    if blob is None:
        return  # the rule `blobs` says so
    assert trial.agent is not None  # only agents are told anything
    addition = scaffold(trial.agent.scaffold).addition.strip()
    text = blob.decode(errors="replace")
    if addition and not text.endswith(f"\n\n{addition}"):
        tally.findings.append(Finding(trial.name, seq, "its prompt lacks what its scaffold adds to every prompt"))
        return
    shared = text.removesuffix(f"\n\n{addition}") if addition else text
    if digest_of_json(["prompt", shared]) != prepared.prompt_digest:
        what = (
            f"what it is told without its scaffold's addition has another digest than {prepared.prompt_digest}: it "
            "was told something that nobody declared"
        )
        tally.findings.append(Finding(trial.name, seq, what))
