"""A batch is the rollouts of the step's trained groups, each once, with the scores and contents that they have."""

from pydantic import ValidationError

from stepwell.audit.finding import Finding, Tally
from stepwell.audit.record import RunRecord, outcome_of
from stepwell.events import GroupClosed, StepAdmitted, StepDispatched
from stepwell.events.group_closed import Fate
from stepwell.events.streams import prompt_stream, rollout_stream
from stepwell.rl.batching import BatchManifest, ManifestSample

HOLDS = "each batch lists exactly the rollouts of its admitted groups, with their scores and contents"
UNIT = "rollouts in batches"


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule to each admitted step whose manifest is present."""
    stream = record.run_events
    prompts = {event.step: len(event.tasks) for _, event in stream.every(StepDispatched)}
    for seq, admitted in stream.every(StepAdmitted):
        blob = record.documents.get(admitted.manifest)
        if blob is None:
            continue  # the rule `blobs` says so
        try:
            manifest = BatchManifest.model_validate_json(blob)
        except ValidationError as error:
            what = f"blob {admitted.manifest} is no batch manifest: {error.errors()[0]['msg']}"
            tally.findings.append(Finding(stream.name, seq, what))
            continue
        _check_head(admitted, manifest, stream.name, seq, tally)
        _check_members(record, admitted.step, prompts.get(admitted.step, 0), manifest, stream.name, seq, tally)
        for sample in manifest.samples:
            _check_sample(record, sample, stream.name, seq, tally)


def _check_head(admitted: StepAdmitted, manifest: BatchManifest, stream: str, seq: int, tally: Tally) -> None:
    step = admitted.step
    found = (manifest.step, manifest.parent_version, manifest.version)
    if found != (step, step, step + 1):
        tally.findings.append(
            Finding(
                stream,
                seq,
                f"the batch of step {step} says (step, parent, version) {found}, wanted {(step, step, step + 1)}",
            )
        )
    rewards = [sample.reward for sample in manifest.samples if sample.reward is not None]
    counted = (len(manifest.samples), sum(sample.mask is not None for sample in manifest.samples))
    mean = sum(rewards) / len(rewards) if rewards else 0.0
    if (*counted, mean) != (admitted.rollouts, admitted.masked, admitted.reward_mean):
        said = (admitted.rollouts, admitted.masked, admitted.reward_mean)
        tally.findings.append(
            Finding(stream, seq, f"says (rollouts, masked, mean reward) {said}, its batch has {(*counted, mean)}")
        )


def _check_members(
    record: RunRecord, step: int, prompts: int, manifest: BatchManifest, stream: str, seq: int, tally: Tally
) -> None:
    wanted: list[str] = []
    for prompt in range(prompts):
        group = record.streams.get(prompt_stream(record.run, str(step), prompt))
        closing = group.first(GroupClosed) if group else None
        if closing is not None and closing[1].fate is Fate.TRAINED:
            samples = range(len(closing[1].scores))
            wanted += [rollout_stream(record.run, str(step), prompt, sample) for sample in samples]
    listed = [sample.stream for sample in manifest.samples]
    twice = sorted({name for name in listed if listed.count(name) > 1}) if len(set(listed)) != len(listed) else []
    for name in twice:
        tally.findings.append(Finding(stream, seq, f"its batch lists {name} twice"))
    for name in sorted(set(wanted) - set(listed)):
        tally.findings.append(Finding(stream, seq, f"its batch lacks {name}, whose group was trained"))
    for name in sorted(set(listed) - set(wanted)):
        tally.findings.append(Finding(stream, seq, f"its batch lists {name}, whose group was not trained"))


def _check_sample(record: RunRecord, sample: ManifestSample, stream: str, seq: int, tally: Tally) -> None:
    rollout = record.streams.get(sample.stream)
    ended, graded, _ = outcome_of(rollout) if rollout else (None, None, None)
    reward = graded.score if graded else None
    content = ended.content if ended and graded else ""
    tally.expect(
        (sample.reward, sample.content) == (reward, content),
        stream,
        seq,
        f"its batch has {sample.stream} with reward {sample.reward} and content {sample.content or 'none'}; "
        f"recorded are {reward} and {content or 'none'}",
    )
    if sample.mask is not None and sample.advantage != 0.0:
        what = f"its batch gives {sample.stream} the advantage {sample.advantage}, though it is masked ({sample.mask})"
        tally.findings.append(Finding(stream, seq, what))
