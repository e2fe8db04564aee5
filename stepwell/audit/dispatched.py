"""The prompts of each training step: those that were dispatched, and those that replaced failed ones."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from stepwell.events import PromptReplaced, StepDispatched
from stepwell.events.base import Event
from stepwell.events.streams import prompt_stream


class StepPrompt(NamedTuple):
    """One prompt of a step."""

    stream: str
    """Its group's stream."""
    task: str
    """Digest of its task."""
    seq: int
    """Place in `run/<run>` of the event that handed it out."""


@dataclass(frozen=True, slots=True)
class AuditedStep:
    """A step as it was dispatched."""

    seq: int
    """Place of its `StepDispatched` in `run/<run>`."""
    event: StepDispatched
    """What was dispatched."""
    replacements: tuple[tuple[int, PromptReplaced], ...]
    """Place and body of each replacement, in order."""
    prompts: tuple[StepPrompt, ...]
    """By index: first the dispatched ones, then those that replaced."""

    def staleness(self, of_recipe: int) -> int:
        """`run.max_staleness` in force."""
        return int(self.event.settings.get("run.max_staleness", of_recipe))


def steps_of(run: str, events: Iterable[tuple[int, Event]]) -> dict[int, AuditedStep]:
    """Every dispatched step of `run/<run>`, by its number."""
    dispatched: dict[int, tuple[int, StepDispatched]] = {}
    replaced: dict[int, list[tuple[int, PromptReplaced]]] = {}
    for seq, event in events:
        if isinstance(event, StepDispatched):
            dispatched.setdefault(event.step, (seq, event))
        elif isinstance(event, PromptReplaced):
            replaced.setdefault(event.step, []).append((seq, event))
    return {
        step: AuditedStep(seq, event, tuple(replaced.get(step, ())), _prompts(run, seq, event, replaced.get(step, [])))
        for step, (seq, event) in dispatched.items()
    }


def _prompts(
    run: str, seq: int, dispatched: StepDispatched, replaced: Iterable[tuple[int, PromptReplaced]]
) -> tuple[StepPrompt, ...]:
    tasks = [(task, seq) for task in dispatched.tasks] + [(event.task, at) for at, event in replaced]
    scope = str(dispatched.step)
    return tuple(StepPrompt(prompt_stream(run, scope, index), task, at) for index, (task, at) in enumerate(tasks))
