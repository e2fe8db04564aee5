"""Task sets in files: one JSON object a line, each text that tasks share written once.

A line is either `{"text": …}`, or a task in whose `files`, `hidden` and `gold` each value is the number of such a line,
counted from 0, before it. Five hundred tasks of eight packages take 10 MB so, where whole tasks take 200.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from pydantic import ValidationError

from stepwell.tasks.task import Task

SET_STARTS = ("text", "id")
"""First keys of the JSON in a set's first line."""
_TEXTS = ("files", "hidden", "gold")


class BrokenSetFile(ValueError):
    """A file is no task set."""


def write_set(tasks: Iterable[Task], file: IO[str]) -> None:
    """Writes tasks in order; the same tasks give the same bytes."""
    numbers: dict[str, int] = {}
    for task in tasks:
        fields = task.model_dump(mode="json")
        for name in _TEXTS:
            for path, text in fields[name].items():
                if text not in numbers:
                    numbers[text] = len(numbers)
                    file.write(json.dumps({"text": text}) + "\n")
                fields[name][path] = numbers[text]
        file.write(json.dumps(fields) + "\n")


def read_set(path: Path) -> list[Task]:
    """The tasks of a file, in order. A line that holds a whole task, its texts in place, is read as well.

    Raises:
        BrokenSetFile: the file cannot be read, or a line is neither a text nor a task.
    """
    try:
        with path.open(encoding="utf-8") as file:
            return list(_tasks(path, file))
    except (OSError, UnicodeDecodeError) as error:
        raise BrokenSetFile(f"{path} cannot be read: {error}; name a file that `stepwell tasks forge` wrote") from error


def _tasks(path: Path, file: IO[str]) -> Iterator[Task]:
    texts: list[str] = []
    for number, line in enumerate(file, 1):
        try:
            fields = json.loads(line)
            if fields.keys() == {"text"}:
                texts.append(fields["text"])
                continue
            for name in _TEXTS:
                held = fields[name]
                fields[name] = {key: texts[text] if isinstance(text, int) else text for key, text in held.items()}
            yield Task.model_validate(fields)
        except (ValueError, KeyError, IndexError, AttributeError, TypeError, ValidationError) as error:
            said = str(error).splitlines()[0]
            raise BrokenSetFile(f"line {number} of {path} is neither a text nor a task: {said}") from error
