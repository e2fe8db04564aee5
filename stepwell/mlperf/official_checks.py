"""MLCommons' own checkers, in this process: of one log, of a submission's convergence, of a whole package."""

import logging
import shutil
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepwell.mlperf import BENCHMARK, RULESET
from stepwell.mlperf.official_package import official

USAGE = "training"
"""Whose benchmark it is, as the checkers ask."""
RESULTS = 3
"""Logs of a submission, of which the best and the worst do not count."""
_BETWEEN = "\n" + "-" * 30 + "\n"
"""What the compliance checker puts between the messages that it says at once."""
_CONTEXT = "\ncurrent context"
"""Where a message of the compliance checker turns to its own variables."""


class NoSuchLog(ValueError):
    """There is no log where one was named."""


@dataclass(frozen=True)
class Verdict:
    """What an official checker says."""

    checker: str
    """Which: `compliance`, `rcp`, `system` or `package`."""
    subject: str
    """Of what: a file or folder."""
    passed: bool
    """Whether it is content."""
    messages: tuple[str, ...]
    """What it says."""

    def as_json(self) -> dict[str, Any]:
        """In JSON form."""
        return {
            "checker": self.checker,
            "subject": self.subject,
            "passed": self.passed,
            "messages": list(self.messages),
        }


class _Heard(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.messages: list[tuple[int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps it."""
        self.messages.append((record.levelno, record.getMessage().strip()))

    def said(self, level: int = logging.WARNING) -> tuple[str, ...]:
        """What was said at a level or above."""
        every = [part for at, message in self.messages if at >= level for part in message.split(_BETWEEN)]
        return tuple(part.split(_CONTEXT)[0].strip() for part in every)


@contextmanager
def _listening() -> Generator[_Heard]:
    """The checkers speak by the root logger, which is given back as it was."""
    heard, root = _Heard(), logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers = [heard]
    root.setLevel(logging.INFO)
    try:
        yield heard
    finally:
        root.handlers = handlers
        root.setLevel(level)


def check_compliance(path: Path) -> Verdict:
    """The compliance checker on one log.

    Raises:
        NoMlperfLogging: the package is not installed.
        NoSuchLog: there is no such file.
    """
    if not path.is_file():
        raise NoSuchLog(f"{path}: there is no such log")
    compliance: Any = official("compliance_checker.mlp_compliance")
    checker = compliance.make_checker(USAGE, RULESET, quiet=False, werror=False)
    with _listening() as heard:
        try:
            passed = bool(checker.check_file(str(path), f"{USAGE}_{RULESET}/common.yaml"))
        except (KeyError, TypeError) as error:  # a line without `key`, `value` or `metadata`
            return Verdict("compliance", str(path), False, (f"the checker cannot read a line of it: {error!r}",))
    return Verdict("compliance", str(path), passed, heard.said())


def check_convergence(paths: Sequence[Path]) -> Verdict:
    """The checker of reference convergence points on logs that comply.

    Raises:
        NoMlperfLogging: the package is not installed.
    """
    subject = f"{len(paths)} logs"
    if len(paths) < RESULTS:
        return Verdict("rcp", subject, False, (f"{len(paths)} log(s) given, {RESULTS} are a submission",))
    rcp: Any = official("rcp_checker.rcp_checker")
    with tempfile.TemporaryDirectory(prefix="stepwell-rcp-") as folder, _listening() as heard:
        for number, path in enumerate(paths):
            shutil.copyfile(path, Path(folder) / f"result_{number}.txt")
        passed, said, _ = rcp.check_directory(
            folder, USAGE, RULESET, verbose=False, bert_train_samples=False, rcp_pass="pruned_rcps"
        )
    return Verdict("rcp", subject, bool(passed), (str(said), *heard.said()))


def check_package(folder: Path) -> list[Verdict]:
    """The package checker on a submission's folder, `<org>`: system descriptions, then results.

    Raises:
        NoMlperfLogging: the package is not installed.
    """
    package: Any = official("package_checker.package_checker")
    verdicts: list[Verdict] = []
    with _listening() as heard:
        passed = bool(package.check_systems(str(folder), USAGE, RULESET))
    verdicts.append(Verdict("system", str(folder / "systems"), passed, heard.said()))
    with _listening() as heard:
        passed = bool(
            package.check_training_result_files(
                str(folder),
                USAGE,
                RULESET,
                quiet=False,
                werror=False,
                rcp_bypass=False,
                rcp_bert_train_samples=False,
                seed_checker_bypass=False,
            )
        )
    verdicts.append(Verdict("package", str(folder / "results"), passed, heard.said()))
    return verdicts


def result_files(folder: Path) -> list[Path]:
    """Logs of a folder, in the order of their numbers."""
    found = [path for path in folder.glob("result_*.txt") if path.stem.removeprefix("result_").isdecimal()]
    return sorted(found, key=lambda path: int(path.stem.removeprefix("result_")))


def results_folder(folder: Path, system: str) -> Path:
    """Where a submission's logs lie."""
    return folder / "results" / system / BENCHMARK
