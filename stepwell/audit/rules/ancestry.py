"""A fork goes on from what its ancestor recorded, and took over nothing that it would not have made itself.

The ancestor's own rules are not applied here: verify it as well. What is shown is that the events which the fork names
stand in its ancestors' chains, so that whoever trusts the fork's head can trust theirs up to there.
"""

from collections.abc import Callable, Iterator

from stepwell.audit.finding import Finding, Tally
from stepwell.audit.record import RunRecord, StreamRecord
from stepwell.events import (
    GroupOpened,
    RunCreated,
    RunForked,
    StepCompleted,
    StepTrained,
    ValidationRecorded,
    VersionCreated,
)
from stepwell.events.base import Event
from stepwell.events.children import ChildHead
from stepwell.events.run_forked import SharedEvent
from stepwell.events.streams import parse_prompt_stream, prompt_stream, run_stream
from stepwell.recipe.forking import GENERATION, SHARED, VALIDATION, changed_keys
from stepwell.rl.schedule import generation_version

HOLDS = "a fork's versions, scores and rollouts from other runs are what those recorded, and fit its own recipe"
UNIT = "shared events"


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule; a run that is no fork has nothing to check."""
    found = record.run_events.first(RunForked)
    if found is None:
        return
    seq, fork = found
    for shared, wanted, what in _shared(fork):
        event = _event(record, shared)
        fits = event is not None and wanted(event)
        tally.expect(fits, record.run_events.name, seq, f"names {shared.stream} #{shared.seq} as {what}; it is not")
    wanted_versions = list(range(generation_version(fork.step, _staleness(record)), fork.step + 1))
    versions = [shared.version for shared in fork.versions]
    tally.expect(
        versions == wanted_versions,
        record.run_events.name,
        seq,
        f"goes on from the versions {versions}, its first step needs {wanted_versions}",
    )
    _check_recipe(record, fork, seq, tally)
    for child in fork.reused:
        _check_reused(record, child, seq, tally)


def _staleness(record: RunRecord) -> int:
    return 0 if record.recipe is None else record.recipe.run.max_staleness


def _shared(fork: RunForked) -> Iterator[tuple[SharedEvent, Callable[[Event], bool], str]]:
    """Each event that the fork names, what it must be, and that in words."""
    yield (
        fork.head,
        lambda event: (
            (isinstance(event, StepCompleted) and event.version == fork.step)
            or (isinstance(event, RunCreated) and fork.step == 0)
        ),
        f"what completed version {fork.step} of {fork.parent}",
    )
    for version in fork.versions:
        yield (
            version.made_by,
            lambda event, version=version: (
                isinstance(event, VersionCreated | StepTrained)
                and (event.version, event.digests.exported) == (version.version, version.exported)
            ),
            f"what made version {version.version}, {version.exported}",
        )
    for score in fork.scores:
        wanted = (score.version, score.dataset, score.pass_1, score.pass_k, score.k)
        yield (
            score.recorded,
            lambda event, wanted=wanted: (
                isinstance(event, ValidationRecorded)
                and (event.version, event.dataset, event.pass_1, event.pass_k, event.k) == wanted
            ),
            f"the score {score.pass_k} of version {score.version} on {score.dataset}",
        )


def _event(record: RunRecord, shared: SharedEvent) -> Event | None:
    """The event at the place, if it has the hash."""
    stream = record.ancestors.get(shared.stream)
    if stream is None or shared.seq >= len(stream.hashes) or stream.hashes[shared.seq] != shared.hash:
        return None
    return next((placed.event for placed in stream.events if placed.seq == shared.seq), None)


def _check_recipe(record: RunRecord, fork: RunForked, seq: int, tally: Tally) -> None:
    """What must be equal in both recipes for what is shared."""
    parent = record.ancestors.get(run_stream(fork.parent))
    created = parent.first(RunCreated) if parent else None
    if created is None or record.created is None:
        return  # named above, or by the rule `chains`
    keys = [*SHARED, *(GENERATION if fork.reused else ()), *(VALIDATION if fork.scores else ())]
    changed = changed_keys(created[1].recipe, record.created.recipe, keys)
    tally.expect(
        not changed,
        record.run_events.name,
        seq,
        f"shares what {', '.join(changed)} decide, and has set them otherwise than {fork.parent}",
    )


def _check_reused(record: RunRecord, child: ChildHead, seq: int, tally: Tally) -> None:
    """A group that was taken over is its ancestor's, and of a version that the fork's recipe allows."""
    run = record.run_events.name
    theirs, name = record.ancestors.get(child.stream), parse_prompt_stream(child.stream)
    tally.expect(theirs is not None and theirs.child == child, run, seq, f"takes over {child.stream}, which differs")
    ours = record.streams.get(prompt_stream(record.run, name.scope, name.prompt))
    if theirs is None or ours is None:
        return  # not dispatched yet, or the rule `fates` says so
    if [placed.event for placed in ours.events] != [placed.event for placed in theirs.events]:
        tally.findings.append(Finding(ours.name, 0, f"is not {child.stream}, which the run took over"))
    _check_version(record, ours, int(name.scope), tally)


def _check_version(record: RunRecord, group: StreamRecord, step: int, tally: Tally) -> None:
    opening = group.first(GroupOpened)
    if opening is None:
        return
    wanted = generation_version(step, _staleness(record))
    tally.expect(
        opening[1].version == wanted,
        group.name,
        opening[0],
        f"was taken over from version {opening[1].version}, the run generates step {step} by version {wanted}",
    )
