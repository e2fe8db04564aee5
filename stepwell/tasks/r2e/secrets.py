"""What only the grader of a task sees, kept apart from what its agent is told. Pure."""

import json
from typing import Literal

from pydantic import BaseModel, ConfigDict

from stepwell.events.canonical import canonical_json
from stepwell.tasks.r2e.expected import ExpectedTests, expected_tests
from stepwell.tasks.r2e.image_run import TEST_TIMEOUT_S, WORK
from stepwell.tasks.r2e.rows import ExpectedStatus, R2ERow
from stepwell.tasks.task import Task, TaskImage

R2ESplit = Literal["train", "validation"]
HARDEST_LINES = 20
"""Changed lines beyond which a task counts as no harder."""


class UnknownPatch(ValueError):
    """A gold patch that is not of the form."""


class R2ESecrets(BaseModel):
    """Tests, expected statuses and gold patch of a task."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    instance: str
    """The task's id."""
    tests: dict[str, str]
    """Hidden test files by name."""
    expected: dict[str, ExpectedStatus]
    """By the dataset's name of a test."""
    commit: str
    """The gold patch, as the dataset has it."""

    def blob(self) -> bytes:
        """Stored form."""
        return canonical_json(self.model_dump(mode="json"))

    def expected_tests(self) -> ExpectedTests:
        """What the tests must give, by full ids."""
        return expected_tests(self.tests, self.expected)

    def gold_files(self) -> dict[str, bytes | None]:
        """The files that the gold patch changes, as they are after it; None for one that it removes.

        Raises:
            UnknownPatch: the dataset has it in another form.
        """
        try:
            diffs = json.loads(self.commit)["file_diffs"]
            files: dict[str, bytes | None] = {}
            for diff in diffs:
                path, content = diff["header"]["file"]["path"], diff["new_file_content"]
                removed = not content and _is_nowhere(diff.get("plus_file"))
                files[str(path)] = None if removed else str(content).encode()
        except (KeyError, TypeError, AttributeError) as error:
            raise UnknownPatch(
                f"the gold patch of {self.instance} is not of the form: {type(error).__name__} {error}; wanted "
                "file_diffs with header.file.path and new_file_content"
            ) from error
        return files


def secrets_of(row: R2ERow) -> R2ESecrets:
    """What of a row no sandbox of an agent sees."""
    return R2ESecrets(instance=row.instance_id, tests=row.tests, expected=row.expected, commit=row.parsed_commit)


def task_of(row: R2ERow, split: R2ESplit, secrets: str) -> Task:
    """What of a row its agent may see: the issue, and an image to work in, which is put in when it is found.

    Args:
        row: The row.
        split: Which split it is in.
        secrets: SHA-256 of the blob of `secrets_of(row)`.
    """
    return Task(
        id=row.instance_id,
        family=row.repo,
        split=split,
        difficulty=1 + min(row.non_test_lines, HARDEST_LINES),
        issue=row.problem_statement,
        files={},
        hidden={},
        gold={},
        grader="pytest",
        expected=(),
        timeout_s=TEST_TIMEOUT_S,
        secrets=secrets,
    )


def with_image(task: Task, file: str, sha256: str) -> Task:
    """The task with its image: path in the image folder, and digest."""
    return task.model_copy(update={"image": TaskImage(file=file, sha256=sha256, work=WORK)})


def _is_nowhere(side: object) -> bool:
    path = side.get("path") if isinstance(side, dict) else side
    return path in (None, "", "/dev/null", "dev/null")
