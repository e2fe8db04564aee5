"""What a grading gives: a score or a failure, never a default."""

import hashlib
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from stepwell.events.canonical import digest_of_json

Outcome = Literal["passed", "failed", "missing"]
"""`failed`: it ended by an exception, was skipped, or could not be loaded; `missing`: it was not reported."""


class Score(BaseModel):
    """The work was graded."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["score"] = "score"
    value: float
    """1.0 if every expected test ran and passed and every canary failed."""
    outcomes: dict[str, Outcome]
    """Outcome of each expected test, by id."""
    timed_out: bool = False
    """Whether the tests were cut off by their deadline."""
    report: str
    """Why the value is what it is, for people and for the record; never shown to the agent."""

    @property
    def passed(self) -> tuple[str, ...]:
        """Ids of the expected tests that passed."""
        return tuple(test for test, outcome in self.outcomes.items() if outcome == "passed")

    @property
    def failed(self) -> tuple[str, ...]:
        """Ids of the expected tests that did not pass."""
        return tuple(test for test, outcome in self.outcomes.items() if outcome != "passed")


class Failure(BaseModel):
    """The work was not graded."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["failure"] = "failure"
    kind: Literal["infra", "data"]
    """`infra` is tried again; `data` means that the task itself is broken."""
    cause: str


Verdict = Annotated[Score | Failure, Field(discriminator="type")]


def verdict_key(task_digest: str, tree_digest: str, grader_digest: str) -> str:
    """Name of a verdict, which is a function of these three: what was graded once is not graded again."""
    return digest_of_json({"task": task_digest, "tree": tree_digest, "grader": grader_digest})


@cache
def grader_digest() -> str:
    """SHA-256 over the sources of this package, by name: another grader may give another verdict."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    parts = [[source.name, hashlib.sha256(source.read_bytes()).hexdigest()] for source in sources]
    return digest_of_json(parts)
