"""RunForked."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from stepwell.events.base import Event
from stepwell.events.children import ChildHead


class SharedEvent(BaseModel):
    """An event of an ancestor that a fork goes on from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stream: str
    """Its stream."""
    seq: int
    """Its place there."""
    hash: str
    """Its hash: commits to all that came before it in the stream."""


class SharedVersion(BaseModel):
    """A weight version of an ancestor that a fork uses."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: int
    """Its number."""
    exported: str
    """Digest of its exported weights."""
    made_by: SharedEvent
    """The event that made it."""


class SharedScore(BaseModel):
    """A validation of an ancestor's version that counts for a fork too."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: int
    """Weight version."""
    dataset: str
    """Set of tasks."""
    pass_1: float
    """Mean share of samples that pass."""
    pass_k: float
    """Share of tasks that any sample passes."""
    k: int
    """Samples a task."""
    recorded: SharedEvent
    """Where the ancestor recorded it."""


class RunForked(Event):
    """The run goes on from another one: its versions up to `step`, and all that made them, are that run's.

    Second event of `run/<run>`, in one append with `RunCreated`.
    """

    type: Literal["RunForked"] = "RunForked"
    MEASURED = frozenset({"head", "versions", "scores", "reused"})

    parent: str
    """Run whose own history has version `step`."""
    step: int
    """First step of this run, and number of the version that it begins with."""
    head: SharedEvent
    """Event of `run/<parent>` that completed the version: commits to the whole run up to there."""
    versions: list[SharedVersion]
    """Versions that generate or begin this run's first steps, in order; the last is `step`."""
    scores: list[SharedScore]
    """Validations of versions up to `step`, made as this run's recipe asks for them."""
    reused: list[ChildHead]
    """Prompt groups `prompt/<parent>/<step>/…` of this run's first steps whose rollouts are taken over: generated as
    this run would generate them, by a version within its bound on staleness."""

    def key(self) -> str:
        return "forked"
