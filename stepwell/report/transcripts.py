"""Rollouts read back for readers: what the policy wrote and was told, what it changed, how that was judged and weighed.

A pure function over what was read of the run. A rollout whose turns have expired is left out; of another whatever is
still stored is told.
"""

import json
from collections.abc import Callable, Iterable, Sequence

from pydantic import TypeAdapter, ValidationError
from tokenizers import Tokenizer

from stepwell.agent.turn import TurnPayload, parse_changed_files
from stepwell.audit.provenance.generation import counted_turns
from stepwell.audit.provenance.grading import reached_verdict
from stepwell.audit.provenance.places import sample_of, tasks_of
from stepwell.audit.provenance.serving import read_task
from stepwell.audit.provenance.source import Fact, RunSource
from stepwell.events import RolloutEnded, TurnRecorded, VersionCreated
from stepwell.events.streams import parse_rollout_stream, weights_stream
from stepwell.report.examples import Example, Transcript, TranscriptTurn
from stepwell.report.patch import FilePatch, file_patches
from stepwell.tasks.grading.verdict import Score
from stepwell.tasks.task import Task

_FOLDER: TypeAdapter[dict[str, str]] = TypeAdapter(dict[str, str])

Decode = Callable[[Sequence[int]], str]
"""Tokens to text."""


def transcripts(source: RunSource, examples: Iterable[Example]) -> list[Transcript]:
    """What was said and done in rollouts."""
    decode = _decoder(source)
    told = [_transcript(source, example, decode) for example in examples]
    return [transcript for transcript in told if transcript is not None]


def _transcript(source: RunSource, example: Example, decode: Decode | None) -> Transcript | None:
    turns = [_turn(source, fact, decode) for fact in counted_turns(source, example.stream)]
    told = [turn for turn in turns if turn is not None]
    name, ended = parse_rollout_stream(example.stream), source.first(example.stream, RolloutEnded)
    tasks, sample = tasks_of(source, name.scope), sample_of(source, example.stream)
    task = read_task(source, tasks[name.prompt]) if name.prompt < len(tasks) else None
    patch = None if ended is None else _patch(source, ended, task)
    verdict = None if ended is None else _verdict(source, ended)
    if len(told) < len(turns):
        return None
    versions = {fact.event.version for fact in counted_turns(source, example.stream)}
    return Transcript(
        title=example.why,
        stream=example.stream,
        score=example.score,
        turns=tuple(told),
        task=task.id if task else "",
        issue=task.issue if task else "",
        version=max(versions, default=None),
        end="" if ended is None else ended.event.reason,
        advantage=None if sample is None else sample.advantage,
        mask="" if sample is None or sample.mask is None else sample.mask,
        patch=patch,
        verdict=verdict,
    )


def _turn(source: RunSource, fact: Fact[TurnRecorded], decode: Decode | None) -> TranscriptTurn | None:
    data = source.blob(fact.event.payload)
    if data is None:
        return None
    payload = TurnPayload.model_validate_json(data)
    action = payload.action
    text = None if decode is None else decode(payload.token_ids)
    return TranscriptTurn(action.tool, action.arguments, payload.observation, fact.event.generated_tokens, text)


def _patch(source: RunSource, ended: Fact[RolloutEnded], task: Task | None) -> tuple[FilePatch, ...] | None:
    data = source.blob(ended.event.changed)
    if data is None or task is None:
        return None
    try:
        changed = parse_changed_files(data)
    except (json.JSONDecodeError, ValueError, TypeError, AttributeError):
        return None
    return tuple(file_patches(task.files, changed, in_image=task.image is not None))


def _verdict(source: RunSource, ended: Fact[RolloutEnded]) -> Score | None:
    reached = reached_verdict(source, ended.event.verdict_key)
    data = None if reached is None else source.blob(reached.event.report)
    try:
        return None if data is None else Score.model_validate_json(data)
    except ValidationError:
        return None


def _decoder(source: RunSource) -> Decode | None:
    """The run's own tokenizer: it is stored with version 0."""
    created = source.first(weights_stream(source.run), VersionCreated)
    folder = None if created is None else source.blob(created.event.export)
    try:
        files = {} if folder is None else _FOLDER.validate_json(folder)
    except ValidationError:
        return None
    data = source.blob(files["tokenizer.json"]) if "tokenizer.json" in files else None
    if data is None:
        return None
    tokenizer = Tokenizer.from_str(data.decode())
    return lambda ids: tokenizer.decode(list(ids), skip_special_tokens=False)
