"""A batch is the rollouts of the step's trained groups, each once, with the scores and contents that they have; its
membership, masks, advantages and packing are computed again from what is recorded, by the settings of the step."""

from pydantic import ValidationError

from stepwell.audit.finding import Finding, Tally
from stepwell.audit.record import RunRecord, outcome_of
from stepwell.events import GroupOpened, RowsRecorded, StepAdmitted
from stepwell.events.group_closed import Fate
from stepwell.rl.admission import ClosedGroup, Inadmissible, NotReady, admit
from stepwell.rl.batching import BatchManifest, ManifestSample, RolloutFacts, build_manifest
from stepwell.rl.outcomes import rollout_facts

HOLDS = "each batch is what its step's closed groups and settings make it: members, scores, contents, advantages, order"
UNIT = "rollouts in batches"


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule to each admitted step whose manifest is present."""
    stream = record.run_events
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
        found = len(tally.findings)
        wanted = _members(record, admitted.step)
        _check_members(wanted, manifest, stream.name, seq, tally)
        for sample in manifest.samples:
            _check_sample(record, sample, stream.name, seq, tally)
        if len(tally.findings) == found:  # else what differs is named already
            _check_admission(record, admitted.step, stream.name, seq, tally)
            _check_rebuilt(record, admitted.step, wanted, manifest, stream.name, seq, tally)


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


def _members(record: RunRecord, step: int) -> list[str]:
    """Rollouts of the step's trained groups."""
    wanted: list[str] = []
    dispatched = record.steps.get(step)
    for prompt in dispatched.prompts if dispatched else ():
        closed = record.closing(prompt.stream)
        if closed is not None and closed.fate is Fate.TRAINED:
            below = record.rollouts_below(prompt.stream)
            wanted += [f"{below}{sample}" for sample in range(len(closed.scores))]
    return wanted


def _check_members(wanted: list[str], manifest: BatchManifest, stream: str, seq: int, tally: Tally) -> None:
    listed = [sample.stream for sample in manifest.samples]
    twice = sorted({name for name in listed if listed.count(name) > 1}) if len(set(listed)) != len(listed) else []
    for name in twice:
        tally.findings.append(Finding(stream, seq, f"its batch lists {name} twice"))
    for name in sorted(set(wanted) - set(listed)):
        tally.findings.append(Finding(stream, seq, f"its batch lacks {name}, whose group was trained"))
    for name in sorted(set(listed) - set(wanted)):
        tally.findings.append(Finding(stream, seq, f"its batch lists {name}, whose group was not trained"))


def _check_sample(record: RunRecord, sample: ManifestSample, stream: str, seq: int, tally: Tally) -> None:
    rollout = record.find(sample.stream)
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


def _check_admission(record: RunRecord, step: int, stream: str, seq: int, tally: Tally) -> None:
    """Every prompt of the step has a fate, and what is trained is of the one version that it must be of."""
    dispatched = record.steps.get(step)
    if dispatched is None or record.recipe is None:
        return  # the rules `fates` and `settings` say so
    groups: list[ClosedGroup] = []
    for index, prompt in enumerate(dispatched.prompts):
        group, closed = record.streams.get(prompt.stream), record.closing(prompt.stream)
        opening = group.first(GroupOpened) if group else None
        if closed is not None:
            version = opening[1].version if opening else None
            groups.append(ClosedGroup(prompt=index, fate=closed.fate, version=version))
    try:
        admit(step, len(dispatched.prompts), dispatched.staleness(record.recipe.run.max_staleness), groups)
    except (NotReady, Inadmissible) as error:
        tally.findings.append(Finding(stream, seq, f"admitted, though {error}"))


def _check_rebuilt(
    record: RunRecord, step: int, wanted: list[str], manifest: BatchManifest, stream: str, seq: int, tally: Tally
) -> None:
    """The manifest computed anew has the same bytes."""
    recipe = record.recipe
    if recipe is None:
        return
    facts = [_facts(record, name, overlong_filtering=recipe.rl.overlong_filtering) for name in wanted]
    try:
        rebuilt = build_manifest(
            step=step,
            parent_version=step,
            temperature=recipe.sampling.temperature,
            rollouts=facts,
            grpo=recipe.rl,
            packing=recipe.trainer.packing,
            run_seed=recipe.run.seed,
        )
    except ValueError as error:
        tally.findings.append(Finding(stream, seq, f"its batch cannot be computed from what is recorded: {error}"))
        return
    if rebuilt.canonical_bytes() != manifest.canonical_bytes():
        tally.findings.append(
            Finding(stream, seq, f"its batch is not what is recorded makes it: {_first(manifest, rebuilt)}")
        )


def _facts(record: RunRecord, name: str, *, overlong_filtering: bool) -> RolloutFacts:
    rollout = record.find(name)
    outcome = outcome_of(rollout) if rollout else (None, None, None)
    listed = rollout.first(RowsRecorded) if rollout else None
    return rollout_facts(name, *outcome, rows=listed and listed[1], overlong_filtering=overlong_filtering)


def _first(found: BatchManifest, wanted: BatchManifest) -> str:
    """The first thing in which two manifests differ, in words."""
    for ours, theirs in zip(found.samples, wanted.samples, strict=False):
        for name in ManifestSample.model_fields:
            if getattr(ours, name) != getattr(theirs, name):
                return f"{name} of {ours.stream} is {getattr(ours, name)}, computed is {getattr(theirs, name)}"
    for name in ("temperature", "micro_batches"):
        if getattr(found, name) != getattr(wanted, name):
            return f"{name} is {getattr(found, name)}, computed is {getattr(wanted, name)}"
    return "other samples"
