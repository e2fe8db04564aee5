"""Where an evaluation keeps what it has, so that one that was killed is taken up: each batch of answers as it comes.

The folder belongs to one evaluation: `order.json` says to which. One process at a time works in it.
"""

import fcntl
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from pydantic import TypeAdapter

from stepwell.events.canonical import canonical_json
from stepwell.ptb.evaluation.result import Answer, EvaluationResult, FailedAttempt

_ANSWERS: TypeAdapter[tuple[Answer, ...]] = TypeAdapter(tuple[Answer, ...])
_ENVIRONMENT: TypeAdapter[dict[str, str]] = TypeAdapter(dict[str, str])
_DIED: TypeAdapter[tuple[FailedAttempt, ...]] = TypeAdapter(tuple[FailedAttempt, ...])


class OtherEvaluation(ValueError):
    """The folder holds another evaluation than the one that is asked for."""


class EvaluationUnderWay(Exception):
    """Another process works in the folder."""


class WorkFolder:
    """One evaluation's folder, while the block runs.

    Args:
        folder: Made if missing.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> "WorkFolder":
        """Takes the folder.

        Raises:
            EvaluationUnderWay: another process has it.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._lock)
            raise EvaluationUnderWay(
                f"another process evaluates in {self.folder}: wait for it, or name another folder"
            ) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._lock)

    def claim(self, identity: Mapping[str, object]) -> None:
        """Says which evaluation it is, by all that answers and scores depend on.

        Raises:
            OtherEvaluation: it is another.
        """
        order, wanted = self.folder / "order.json", canonical_json(dict(identity))
        if not order.exists():
            self._write(order, wanted)
        elif order.read_bytes() != wanted:
            raise OtherEvaluation(
                f"{self.folder} holds another evaluation: another model, benchmark, seed, setting or version of "
                "something (order.json says which); name another folder, or remove this one"
            )

    def answers(self, max_tokens: int, seed: int, batch: int) -> tuple[Answer, ...] | None:
        """Answers to a batch, if it was answered."""
        path = self._batch(max_tokens, seed, batch)
        return _ANSWERS.validate_json(path.read_bytes()) if path.exists() else None

    def keep_answers(self, max_tokens: int, seed: int, batch: int, answers: Sequence[Answer]) -> None:
        """Keeps them; they are on the disk when this returns."""
        path = self._batch(max_tokens, seed, batch)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._write(path, _ANSWERS.dump_json(tuple(answers)))

    def died(self) -> tuple[FailedAttempt, ...]:
        """Attempts that died, in order."""
        path = self.folder / "died.json"
        return _DIED.validate_json(path.read_bytes()) if path.exists() else ()

    def keep_died(self, attempt: FailedAttempt) -> None:
        """Adds one."""
        self._write(self.folder / "died.json", _DIED.dump_json((*self.died(), attempt)))

    def environment(self) -> dict[str, str]:
        """Numeric environment of the answers; empty if there are none."""
        path = self.folder / "environment.json"
        return _ENVIRONMENT.validate_json(path.read_bytes()) if path.exists() else {}

    def keep_environment(self, environment: Mapping[str, str]) -> None:
        """Keeps it, once.

        Raises:
            OtherEvaluation: the answers that there are were given in another.
        """
        known = self.environment()
        if not known:
            self._write(self.folder / "environment.json", canonical_json(dict(environment)))
        elif known != dict(environment):
            raise OtherEvaluation(
                f"{self.folder} holds answers of the numeric environment {known}, and this one is {dict(environment)}: "
                "go on where it began, or begin anew in another folder"
            )

    def result(self) -> EvaluationResult | None:
        """What came of it, if it is done."""
        path = self.folder / "result.json"
        return EvaluationResult.model_validate_json(path.read_bytes()) if path.exists() else None

    def keep_result(self, result: EvaluationResult) -> None:
        """The last that is kept."""
        self._write(self.folder / "result.json", result.model_dump_json(indent=1).encode() + b"\n")

    def _batch(self, max_tokens: int, seed: int, batch: int) -> Path:
        return self.folder / "answers" / f"{max_tokens}-{seed}" / f"{batch:05}.json"

    def _write(self, path: Path, data: bytes) -> None:
        """All or nothing, whatever dies."""
        descriptor, draft = tempfile.mkstemp(dir=self.folder, prefix=".draft-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(draft, 0o644)
            os.replace(draft, path)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise
