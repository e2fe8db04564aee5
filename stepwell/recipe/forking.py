"""What a fork may change of its parent's recipe, and what follows from a change."""

from collections.abc import Mapping, Sequence
from typing import Any

SHARED = ("policy", "tasks", "run.prompts_per_step", "trainer.compute_dtype", "trainer.freeze_router")
"""Keys that a fork has from its parent: what is trained, on what, and in which order."""
GENERATION = (
    "policy",
    "tasks",
    "agent",
    "sampling",
    "sandbox",
    "engine",
    "run.seed",
    "run.samples_per_prompt",
)
"""Keys that decide what a rollout does and scores: a fork that sets one makes its rollouts anew."""
VALIDATION = (
    *(key for key in GENERATION if key not in ("sampling", "run.samples_per_prompt")),
    "validation.tasks",
    "validation.confirm_tasks",
    "validation.heldout_tasks",
    "validation.samples",
    "validation.temperature",
    "validation.top_p",
)
"""Keys that decide a score: a fork that sets one validates its first version anew."""


def changed_keys(before: Mapping[str, Any], after: Mapping[str, Any], keys: Sequence[str]) -> list[str]:
    """Those of some keys whose values differ between two resolved recipes in JSON form."""
    return [key for key in keys if _value(before, key) != _value(after, key)]


def _value(recipe: Mapping[str, Any], key: str) -> Any:
    value: Any = recipe
    for name in key.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
