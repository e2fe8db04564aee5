"""What was evaluated is what the agent had submitted, file by file."""

from stepwell.audit.finding import Finding, Tally
from stepwell.events import SubmissionEvaluated, SubmissionTaken
from stepwell.events.canonical import digest_of_json
from stepwell.ptb.trials.audited import ENTRIES, RESULT, AuditedTrial, RunSetRecord
from stepwell.ptb.trials.manifest import MODEL_FOLDER, Entry, manifest_digest

HOLDS = "a submission's digest is that of its files, which lay in the work folder; no other model was evaluated"
UNIT = "submissions and evaluations"


def check(record: RunSetRecord, tally: Tally) -> None:
    """Applies the rule to each trial of an agent."""
    for trial in record.trials:
        for seq, taken in trial.stream.every(SubmissionTaken):
            _check_taken(record, trial, seq, taken, tally)
        for seq, evaluated in trial.stream.every(SubmissionEvaluated) if trial.created.role == "agent" else ():
            _check_evaluated(record, trial, seq, evaluated, tally)


def _check_taken(record: RunSetRecord, trial: AuditedTrial, seq: int, taken: SubmissionTaken, tally: Tally) -> None:
    is_model = (bool(taken.model), bool(taken.weights_digest)) == (not taken.failure,) * 2
    tally.expect(is_model, trial.name, seq, "has both a model and a reason why there is none, or neither")
    model, everything = record.read(taken.model, ENTRIES), record.read(taken.manifest, ENTRIES)
    if model is None:
        return  # there is none, or the rules `blobs` and `documents` say so
    digest = manifest_digest(model)
    if digest != taken.weights_digest:
        what = f"weights_digest is {taken.weights_digest}, its files have the digest {digest}"
        tally.findings.append(Finding(trial.name, seq, what))
    for entry in model if everything is not None else ():
        if not _lay_there(entry, {each.path: each for each in everything or ()}):
            what = f"the model's {entry.path} did not lie in the work folder with the contents {entry.content}"
            tally.findings.append(Finding(trial.name, seq, what))


def _lay_there(entry: Entry, everything: dict[str, Entry]) -> bool:
    """Whether a submitted file was in the work folder: as it is, or behind a link with the same contents elsewhere."""
    path = f"{MODEL_FOLDER}/{entry.path}"
    found = everything.get(path)
    if found is not None and found.kind == "file":
        return found.content == entry.content
    parts = path.split("/")
    parents = ("/".join(parts[:end]) for end in range(1, len(parts) + 1))
    is_linked = any(everything[each].kind == "link" for each in parents if each in everything)
    return is_linked and any(each.kind == "file" and each.content == entry.content for each in everything.values())


def _check_evaluated(
    record: RunSetRecord, trial: AuditedTrial, seq: int, evaluated: SubmissionEvaluated, tally: Tally
) -> None:
    result = record.read(evaluated.report, RESULT)
    taken = trial.counting(SubmissionTaken)
    model = record.read(taken[-1][1].model, ENTRIES) if taken else None
    if result is None or result.submission is None or model is None:
        return  # refused before it was read, or other rules say so
    submitted = {entry.path: entry.content for entry in model}
    for name, content in result.submission.files.items():
        what = f"evaluated with {name} of {content}, submitted was {submitted.get(name, 'no such file')}"
        tally.expect(submitted.get(name) == content, trial.name, seq, what)
    digest = digest_of_json(result.submission.files)
    if digest != result.submission.digest:
        what = f"evaluated was a model of {result.submission.digest}, its files have the digest {digest}"
        tally.findings.append(Finding(trial.name, seq, what))
