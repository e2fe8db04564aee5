"""What happens in a small run that a test writes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PROMPTS, SAMPLES, STEPS = 2, 3, 2

Place = tuple[int, int]
"""Step and prompt."""


@dataclass(frozen=True)
class Plan:
    """What happens in a run."""

    steps: int = STEPS
    finish: bool = True
    """Whether it ends, at its last step; its last version is validated then."""
    signed: bool = True
    """Whether its heads are signed."""
    stopped_in: int | None = None
    """Step in which an operator stops it at once: its prompts are skipped, and it is not admitted."""
    recipe: Mapping[str, Any] = field(default_factory=dict)
    """Sections beside `run`."""
    quarantined: frozenset[Place] = frozenset()
    """Prompts whose data are broken."""
    replaced: Mapping[Place, int] = field(default_factory=dict)
    """For a new prompt, the one that it replaces."""
    all_end: bool = False
    """Whether every rollout comes to an end of its own; else the last of prompt 1 fails in each step."""
    afterwards: bool = False
    """Whether every version is validated when all are trained, the newest first, and none before."""
    skipped: frozenset[Place] = frozenset()
    """Prompts that an operator took out."""
    settings: Mapping[int, Mapping[str, float | int]] = field(default_factory=dict)
    """What an operator sets before a step."""
    tainted: tuple[str, ...] = ()
    """Rollouts, by the end of their streams' names, that an operator marks when the run is over; the last mark is taken
    back."""
    rows: int = 1
    """Rows of tokens that each rollout's turns make: one turn each."""
    asked: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Gates that are raised and approved, by what they are before: `version 1`, `validation 0`, `admission 1`,
    `step 0`."""


EVENTFUL = Plan(
    steps=3,
    recipe={
        "failures": {"reserve": 1, "min_prompts": 2},
        "gates": {"publish": True, "validation": True, "grad_norm": [0.0, 1.5], "pass_k": [0.0, 0.9]},
    },
    quarantined=frozenset({(0, 1)}),
    replaced={(0, 2): 1},
    skipped=frozenset({(1, 0)}),
    tainted=("1/1/0", "0/0/0"),
    settings={1: {"optimiser.learning_rate": 0.01}, 2: {"run.max_staleness": 1}},
    asked={
        "validation 0": ["validation/0"],
        "step 0": ["band/pass_k/0"],
        "admission 1": ["smaller/1"],
        "version 1": ["publish/1"],
        "version 2": ["band/grad_norm/2", "publish/2"],
        "version 3": ["publish/3"],
        "validation 3": ["validation/3"],
        "end": ["band/pass_k/3"],
    },
)
"""A prompt is quarantined and replaced, one is skipped, settings change, gates wait and are opened."""
