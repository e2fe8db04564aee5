"""A software task: what the agent sees, and what only the grader sees."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from stepwell.events.canonical import digest_of_json
from stepwell.sandbox.protocol import WORK

Split = Literal["train", "validation", "confirm", "heldout_family"]


class TaskImage(BaseModel):
    """The image that a task's sandboxes are made from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: str
    """Path in the folder of images that the sandbox worker has."""
    sha256: str
    """Of the file."""
    work: str
    """Absolute path of the work tree in the image."""


class Origin(BaseModel):
    """Where a task from a real package comes from, what was done to it, and what makes it hard. No agent sees it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    package: str
    version: str
    sha256: str
    """Of the source distribution."""
    licence: str
    """SPDX identifier."""
    kind: str
    """Kind of defect."""
    path: str
    """File with the defect."""
    function: str
    """Qualified name of the function with the defect, within its module."""
    line: int
    """Line of the defect, from 1."""
    function_lines: int
    """Lines of that function."""
    package_lines: int
    """Lines of all modules that the defect could be in."""
    package_files: int
    """Those modules."""
    covering_tests: int
    """Tests that run the line of the defect."""
    failing_tests: int
    """Tests that fail with the defect."""


def _is_none(value: object) -> bool:
    return value is None


class Task(BaseModel):
    """One repository with a defect, an issue text, and hidden tests that fail with the defect and pass without it.

    The agent's sandbox is given `files` only. `hidden` enters the grader's sandbox after the agent's work was taken
    out of its own. `gold` enters no sandbox that holds anything of an agent: only those of the environment audit, and
    those in which the grader sees what honest work does.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    """Unique in its task set, for example `forged/clamp/00017`."""
    family: str
    """What varies together: a template or a package. A held-out family shares none with the training split."""
    split: Split
    difficulty: int
    """Position on the curriculum's scale, from 1; the order of training tasks never decreases in it."""
    issue: str
    """What the agent is told."""
    files: dict[str, str]
    """Work tree as the agent finds it: relative POSIX path to text."""
    hidden: dict[str, str]
    """Hidden test files: relative POSIX path to text."""
    gold: dict[str, str]
    """The files that the reference solution changes, as they are after it."""
    grader: Literal["calls", "pytest"]
    """`calls`: a light runner of plain test functions (21 ms); `pytest`: the real thing (300 ms)."""
    protected: tuple[str, ...] = ()
    """Paths put back to their state in `files` (or removed, if they are not in it) before grading: tests, test
    configuration, interpreter start-up files."""
    expected: tuple[str, ...]
    """Ids of the hidden tests that must pass, and all of which must have run."""
    timeout_s: float = 20.0
    """Wall clock of one grading."""
    image: TaskImage | None = Field(default=None, exclude_if=_is_none)
    """What the sandbox is made from, `files` laid over it; None: the sandbox's own system."""
    secrets: str | None = Field(default=None, exclude_if=_is_none)
    """SHA-256 of the blob with what only the grader sees, if that is kept apart: `hidden`, `gold` and `expected` are
    empty then."""
    origin: Origin | None = Field(default=None, exclude_if=_is_none)
    """Of a task from a real package. None of these three is in the stored form of a task that has it not, so that the
    digests of others stay the same."""

    @property
    def work(self) -> str:
        """Root of the work tree in its sandboxes."""
        return WORK if self.image is None else self.image.work

    @property
    def digest(self) -> str:
        """SHA-256 over the canonical JSON of all fields."""
        return digest_of_json(self.model_dump(mode="json"))
