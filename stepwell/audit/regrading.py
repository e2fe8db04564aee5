"""Recorded work graded again: which gradings that takes, and which advantages would be others by what they say."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from stepwell.audit.advantage_changes import StepChange, compare_batches
from stepwell.audit.recipe import AuditedRecipe
from stepwell.audit.replaying.batch import batch_of
from stepwell.audit.replaying.step_record import StepRecord
from stepwell.events import RolloutGraded
from stepwell.events.streams import parse_rollout_stream


@dataclass(frozen=True)
class Work:
    """A tree that was graded once for all rollouts that arrived at it."""

    key: str
    """Its verdict."""
    task: str
    """Digest of the task."""
    tree: str
    """Digest of the tree."""
    changed: str
    """Blob: the files that differ from the task's."""
    graded: RolloutGraded
    """What is recorded."""
    streams: tuple[str, ...]
    """Rollouts that have it, of the steps that were asked for."""

    @property
    def places(self) -> tuple[str, ...]:
        """Its rollouts, as `stepwell audit explain` takes them."""
        names = map(parse_rollout_stream, self.streams)
        return tuple(f"rollout/{name.scope}/{name.prompt}/{name.sample}" for name in names)


@dataclass(frozen=True)
class Regraded:
    """Work that was graded again."""

    work: Work
    """What was graded."""
    score: float | None
    """What it is now; None if it could not be graded."""
    timed_out: bool
    """Whether its tests were cut off now."""
    report: str
    """Why the score is what it is; of what could not be graded, why not."""
    is_same_grader: bool
    """Whether the grader is the one that graded it first: then another score means that one of them is wrong."""
    tests: Mapping[str, tuple[str, str]]
    """Tests with another outcome, each as recorded and now."""

    @property
    def differs(self) -> bool:
        """Whether another verdict was reached."""
        recorded = (self.work.graded.score, self.work.graded.timed_out)
        return self.score is not None and (self.score, self.timed_out) != recorded

    def words(self) -> str:
        """As a line."""
        first, *others = self.work.places
        more = f" and {len(others)} more" if others else ""
        name = f"{first}{more} (verdict {self.work.key[:12]})"
        if self.score is None:
            return f"{name}: could not be graded: {self.report}"
        tests = ", ".join(f"{test} {was} → {now}" for test, (was, now) in self.tests.items())
        return f"{name}: score {self.work.graded.score:g} → {self.score:g}; {tests or self.report}"

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "verdict": self.work.key,
            "rollouts": list(self.work.places),
            "recorded": {"score": self.work.graded.score, "timed_out": self.work.graded.timed_out},
            "now": {"score": self.score, "timed_out": self.timed_out, "report": self.report},
            "same_grader": self.is_same_grader,
            "differs": self.differs,
            "tests": {test: list(outcomes) for test, outcomes in self.tests.items()},
        }


def graded_work(steps: Iterable[StepRecord]) -> list[Work]:
    """All graded work of some steps, each tree once, in the order in which it first appears."""
    found: dict[str, Work] = {}
    for step in steps:
        for group in step.groups:
            task = step.dispatched.prompts[group.prompt].task
            for rollout in group.rollouts:
                if rollout.ended is None or rollout.graded is None:
                    continue
                key, ended = rollout.graded.verdict_key, rollout.ended
                before = found.get(key)
                streams = (*(before.streams if before else ()), rollout.stream)
                graded = before.graded if before else rollout.graded
                found[key] = Work(key, task, ended.tree, ended.changed, graded, streams)
    return list(found.values())


def drawn(work: Sequence[Work], count: int | None, seed: int) -> list[Work]:
    """As much of it at random, in order; all of it by default."""
    if count is None or count >= len(work):
        return list(work)
    places = sorted(Random(seed).sample(range(len(work)), count))
    return [work[place] for place in places]


def blast_radius(steps: Iterable[StepRecord], recipe: AuditedRecipe, regraded: Iterable[Regraded]) -> list[StepChange]:
    """The steps that would have been trained otherwise, by what the work is scored now.

    Raises:
        NotReady, Inadmissible, ValueError: as `stepwell.audit.replaying.batch.batch_of`.
    """
    grades = {
        stream: each.work.graded.model_copy(update={"score": each.score, "timed_out": each.timed_out})
        for each in regraded
        if each.differs
        for stream in each.work.streams
    }
    if not grades:
        return []
    changes = [compare_batches(batch_of(step, recipe), batch_of(step, recipe, grades)) for step in steps]
    return [change for change in changes if change.changes]
