"""How an image runs its tests: read from its own `run_tests.sh`, which differs by repository and commit. Pure.

Such a file is one command, for example `PYTHONWARNINGS='ignore' .venv/bin/python -W ignore -m pytest -rA r2e_tests`, or
with `r2e_tests/unittest_custom_runner.py` in the place of pytest. What is kept of it are the environment, what stands
before the interpreter (`xvfb-run`), the interpreter's options and pytest's; what is said how is our runner's.
"""

import re
import shlex
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from stepwell.tasks.r2e.expected import TESTS_FOLDER, UNITTEST_RUNNERS, Kind

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_PYTHON = re.compile(r"python[0-9.]*")
_REPORT_OPTION = re.compile(r"-r[A-Za-z]+")
_OPTIONS_WITH_VALUE = {"-W", "-X"}


class UnknownEntrypoint(ValueError):
    """A `run_tests.sh` that is not of the form."""


@dataclass(frozen=True)
class Entrypoint:
    """What an image's tests are run with."""

    kind: Kind = "pytest"
    python: str = ".venv/bin/python"
    """From the work tree, or absolute."""
    before: tuple[str, ...] = ()
    """Stands before the interpreter."""
    python_options: tuple[str, ...] = ("-W", "ignore")
    pytest_options: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=lambda: {"PYTHONWARNINGS": "ignore::UserWarning"})


def parse_entrypoint(script: str) -> Entrypoint:
    """What `run_tests.sh` says.

    Raises:
        UnknownEntrypoint: it is more than one command, or runs neither pytest nor one of the known runners.
    """
    lines = [line.strip() for line in script.splitlines()]
    commands = [line for line in lines if line and not line.startswith("#") and line != "set -e"]
    if len(commands) != 1:
        raise UnknownEntrypoint(f"run_tests.sh has {len(commands)} commands, wanted one: {script[:200]!r}")
    try:
        words = shlex.split(commands[0])
    except ValueError as error:
        raise UnknownEntrypoint(f"run_tests.sh is no command: {commands[0]!r} ({error})") from error
    environment: dict[str, str] = {}
    while words and _ASSIGNMENT.fullmatch(words[0]):
        name, _, value = words.pop(0).partition("=")
        environment[name] = value
    place = next((at for at, word in enumerate(words) if _PYTHON.fullmatch(PurePosixPath(word).name)), None)
    if place is None:
        raise UnknownEntrypoint(f"run_tests.sh runs no Python: {commands[0]!r}")
    before, python, rest = tuple(words[:place]), words[place], words[place + 1 :]
    options: list[str] = []
    while rest and rest[0].startswith("-") and rest[0] != "-m":
        option = rest.pop(0)
        options.append(option)
        if option in _OPTIONS_WITH_VALUE and rest:
            options.append(rest.pop(0))
    if rest[:2] == ["-m", "pytest"]:
        pytest_options = tuple(
            word for word in rest[2:] if not _REPORT_OPTION.fullmatch(word) and word.strip("/") != TESTS_FOLDER
        )
        return Entrypoint("pytest", python, before, tuple(options), pytest_options, environment)
    if rest and PurePosixPath(rest[0]).name in UNITTEST_RUNNERS:
        return Entrypoint("unittest", python, before, tuple(options), (), environment)
    raise UnknownEntrypoint(f"run_tests.sh runs neither pytest nor {' nor '.join(UNITTEST_RUNNERS)}: {commands[0]!r}")
