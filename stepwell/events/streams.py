"""Names of streams, in one place.

A *scope* says what a prompt was drawn for: `7` is training step 7, `v8-main` the validation of version 8 on the set
`main`.
"""

from typing import NamedTuple


class RolloutName(NamedTuple):
    """What a rollout stream's name says."""

    run: str
    scope: str
    prompt: int
    sample: int


class PromptName(NamedTuple):
    """What a group stream's name says."""

    run: str
    scope: str
    prompt: int


def run_stream(run: str) -> str:
    """The run's own stream: what was dispatched, admitted, completed."""
    return f"run/{run}"


def operator_stream(run: str) -> str:
    """What operators asked of the run."""
    return f"operator/{run}"


def health_stream(run: str) -> str:
    """What the run's watcher saw: stalls, usage."""
    return f"health/{run}"


def quarantine_stream(run: str) -> str:
    """Rollouts of the run that somebody marked as not to be trusted."""
    return f"quarantine/{run}"


def history_stream(run: str) -> str:
    """Histories of the run's workflows that closed."""
    return f"history/{run}"


def weights_stream(run: str) -> str:
    """Every weight version of the run."""
    return f"weights/{run}"


def seal_stream(run: str) -> str:
    """The run's key and its signed heads."""
    return f"seal/{run}"


def deleted_stream(digest: str) -> str:
    """That the bytes of a blob were deleted: shared by all runs that name it."""
    return f"deleted/{digest}"


def prompt_stream(run: str, scope: str, prompt: int) -> str:
    """One prompt group: index of the prompt in its step or validation set."""
    return f"prompt/{run}/{scope}/{prompt}"


def parse_prompt_stream(stream: str) -> PromptName:
    """The parts of a group stream's name.

    Raises:
        ValueError: it is not one.
    """
    parts = stream.split("/")
    if len(parts) != 4 or parts[0] != "prompt":
        raise ValueError(f"{stream!r} is no group's stream (prompt/<run>/<scope>/<prompt>)")
    return PromptName(parts[1], parts[2], int(parts[3]))


def rollout_stream(run: str, scope: str, prompt: int, sample: int) -> str:
    """One rollout."""
    return f"rollout/{run}/{scope}/{prompt}/{sample}"


def parse_rollout_stream(stream: str) -> RolloutName:
    """The parts of a rollout stream's name.

    Raises:
        ValueError: it is not one.
    """
    parts = stream.split("/")
    if len(parts) != 5 or parts[0] != "rollout":
        raise ValueError(f"{stream!r} is no rollout stream (rollout/<run>/<scope>/<prompt>/<sample>)")
    return RolloutName(parts[1], parts[2], int(parts[3]), int(parts[4]))


def validation_scope(version: int, dataset: str) -> str:
    """Scope of the validation of a version on one set."""
    return f"v{version}-{dataset}"


def validation_stream(run: str, version: int, dataset: str) -> str:
    """One validation."""
    return f"validation/{run}/{validation_scope(version, dataset)}"


def engine_stream(run: str, engine: str) -> str:
    """One engine's life in a run."""
    return f"engine/{run}/{engine}"


def verdict_stream(verdict_key: str) -> str:
    """The one verdict on a tree: shared by all rollouts, groups and runs that arrive at it."""
    return f"verdict/{verdict_key}"


def run_set_stream(run_set: str) -> str:
    """A set of benchmark trials."""
    return f"run-set/{run_set}"


def trial_stream(run_set: str, cell: str) -> str:
    """One trial of it."""
    return f"trial/{run_set}/{cell}"


def override_stream(run_set: str, cell: str) -> str:
    """What persons decided otherwise than a trial's checks and judges."""
    return f"override/{run_set}/{cell}"
