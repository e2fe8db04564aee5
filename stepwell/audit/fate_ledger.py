"""What became of every prompt, and whether what was trained is as long as what was generated, from a run's record."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from stepwell.audit.record import RunRecord, StreamRecord, outcome_of
from stepwell.events import ValidationOpened
from stepwell.events.group_closed import Fate
from stepwell.events.streams import prompt_stream, validation_scope
from stepwell.report.fates import FateCount
from stepwell.report.lengths import Comparison, Length, compare_lengths
from stepwell.report.rollout_lengths import has_vote
from stepwell.report.workers import place_of


@dataclass(frozen=True)
class FateLedger:
    """Prompts and their fates."""

    training: FateCount
    """Of training steps."""
    validation: FateCount
    """Of validations."""
    lengths: tuple[Comparison, ...]
    """Rollouts with a vote against all that were generated, in tokens and in turns; empty where none has one."""

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "training": _counts(self.training),
            "validation": _counts(self.validation),
            "lengths": [compared.as_json() for compared in self.lengths],
        }


def fate_ledger(record: RunRecord) -> FateLedger:
    """Counts what the run dispatched and what became of it."""
    training, validation = FateCount(), FateCount()
    for step in record.steps.values():
        training.replaced += len(step.replacements)
        _count(record, (prompt.stream for prompt in step.prompts), training)
    for stream in record.of_kind("validation"):
        for _, opened in stream.every(ValidationOpened):
            scope = validation_scope(opened.version, opened.dataset)
            _count(record, (prompt_stream(record.run, scope, index) for index in range(len(opened.tasks))), validation)
    return FateLedger(training, validation, compare_lengths(_lengths(record)))


def _count(record: RunRecord, prompts: Iterable[str], fates: FateCount) -> None:
    for prompt in prompts:
        fates.dispatched += 1
        closed = record.closing(prompt)
        if closed is not None:
            fates.close(closed, place_of(prompt))


def _lengths(record: RunRecord) -> list[Length]:
    """Of each training rollout that generated something and whose prompt has its fate."""
    filtered = record.recipe.rl.overlong_filtering if record.recipe else True
    found: list[Length] = []
    for step in record.steps.values():
        for prompt in step.prompts:
            closed = record.closing(prompt.stream)
            if closed is not None:
                for rollout in _rollouts(record, prompt.stream, len(closed.scores)):
                    found += _length(rollout, closed.fate, overlong_filtering=filtered)
    return found


def _rollouts(record: RunRecord, prompt: str, samples: int) -> Iterable[StreamRecord]:
    below = record.rollouts_below(prompt)
    found = (record.find(f"{below}{sample}") for sample in range(samples))
    return (stream for stream in found if stream is not None)


def _length(rollout: StreamRecord, fate: Fate, *, overlong_filtering: bool) -> list[Length]:
    if not rollout.turns:
        return []
    turns = [turn for turn in rollout.turns if turn.epoch == rollout.turns[-1].epoch]
    ended, graded, _ = outcome_of(rollout)
    vote = has_vote(fate, ended, graded, overlong_filtering=overlong_filtering)
    return [Length(sum(turn.generated_tokens for turn in turns), len(turns), vote)]


def _counts(fates: FateCount) -> dict[str, Any]:
    return {
        "dispatched": fates.dispatched,
        "replaced": fates.replaced,
        "open": fates.open,
        "fates": {fate.value: count for fate, count in sorted(fates.by_fate.items())},
        "causes": fates.causes,
    }
