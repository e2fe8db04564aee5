"""Makes a task set of R2E-Gym's files: reads them row by row, finds and hashes the images, writes the set at once."""

import hashlib
import os
import tempfile
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from stepwell.events.canonical import NotCanonical
from stepwell.tasks.r2e.curriculum import CurriculumTask, curriculum, in_listed_order
from stepwell.tasks.r2e.images import find_images, record_images
from stepwell.tasks.r2e.reading import check_file_digest, rows_of
from stepwell.tasks.r2e.rows import BadRow, R2ERow
from stepwell.tasks.r2e.secrets import R2ESplit, secrets_of, task_of, with_image
from stepwell.tasks.r2e.task_set import (
    SECRETS_FOLDER,
    SET_FILE,
    TASKS_FILE,
    Order,
    R2EManifest,
    SourceFile,
    digest_of_tasks,
    lines_of,
)
from stepwell.tasks.task import Task


@dataclass(frozen=True)
class ImportRequest:
    """What is imported."""

    files: tuple[Path, ...]
    """`.jsonl` and `.parquet`."""
    images: Path
    """Folder of the images."""
    split: R2ESplit
    out: Path
    """Folder of the set; this split must not be in it yet."""
    sha256: tuple[str, ...] = ()
    """What the files must be, in their order; empty: they are not checked, their digests are recorded."""
    ids: tuple[str, ...] | None = None
    """Tasks that are taken, in this order unless there are pass rates; None: all of them."""
    pass_rates: Mapping[str, float] | None = None
    """By repository: the tasks are ordered by the fixed curriculum's rule."""


@dataclass
class ImportReport:
    """What an import found."""

    sources: list[SourceFile] = field(default_factory=list[SourceFile])
    by_repo: dict[str, int] = field(default_factory=dict[str, int])
    """Tasks taken."""
    left_out: int = 0
    """Rows that are not among the ids."""
    bad_rows: list[str] = field(default_factory=list[str])
    """In words."""
    absent_ids: list[str] = field(default_factory=list[str])
    """Ids that are in no file."""
    missing_images: list[str] = field(default_factory=list[str])
    """Tasks without an image by either name."""
    ambiguous_tests: dict[str, int] = field(default_factory=dict[str, int])
    """By task: expected tests whose file cannot be told."""
    order: Order = "files"
    digest: str | None = None
    """Of the set that was written; None: none was."""

    @property
    def refused(self) -> bool:
        """Whether the set cannot be made."""
        return bool(self.bad_rows or self.absent_ids or self.missing_images)


class CannotImport(ValueError):
    """A request that cannot be carried out, whatever the files hold."""


def import_r2e(request: ImportRequest) -> ImportReport:
    """Makes a set, or says all that keeps it from being made; then nothing is written.

    Raises:
        CannotImport: the set is there already, or the request contradicts itself.
        UnreadableFile: a file cannot be read or is another than asked for.
        UnknownPassRate: of a repository.
        ImagesUnfit: an image cannot be read.
    """
    place = request.out / request.split
    if place.exists():
        raise CannotImport(f"{place} is there already: remove it, or give another --out")
    if request.sha256 and len(request.sha256) != len(request.files):
        raise CannotImport(f"{len(request.sha256)} digests for {len(request.files)} files: give one a file, in order")
    if request.ids is not None and len(set(request.ids)) != len(request.ids):
        twice = [task for task, count in Counter(request.ids).items() if count > 1]
        raise CannotImport(f"{len(twice)} ids are listed twice, for example {twice[0]}: a task is trained once")
    try:
        request.out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".stepwell-", dir=request.out) as scratch:
            return _import(request, Path(scratch) / request.split, place)
    except OSError as error:
        raise CannotImport(f"cannot write {place}: {error.strerror}") from error


def _import(request: ImportRequest, scratch: Path, place: Path) -> ImportReport:
    taking = _Taking(request, scratch / SECRETS_FOLDER)
    for number, path in enumerate(request.files):
        taking.read(path, request.sha256[number] if request.sha256 else None)
    report = taking.report
    images = find_images(request.images, taking.tasks)
    report.missing_images = [task for task, path in images.items() if path is None]
    report.absent_ids = [task for task in request.ids or () if task not in taking.tasks]
    if not taking.tasks and not report.bad_rows:
        raise CannotImport("no row was taken: the files are empty, or none of their tasks is among the ids")
    if report.refused:
        return report
    found = {task: path for task, path in images.items() if path is not None}
    recorded = record_images(request.images, found)
    tasks = [with_image(task, recorded[task.id].file, recorded[task.id].sha256) for task in taking.in_order()]
    lines = b"".join(lines_of(tasks))
    report.digest = digest_of_tasks(tasks)
    manifest = R2EManifest(
        split=request.split,
        sources=tuple(report.sources),
        order=report.order,
        images_folder=str(request.images.absolute()),
        images=recorded,
        tasks_sha256=hashlib.sha256(lines).hexdigest(),
        digest=report.digest,
    )
    (scratch / TASKS_FILE).write_bytes(lines)
    (scratch / SET_FILE).write_text(manifest.model_dump_json(indent=1) + "\n")
    scratch.rename(place)
    return report


class _Taking:
    """Takes rows one by one: the secrets of each go to disk, the rest is small."""

    def __init__(self, request: ImportRequest, secrets: Path) -> None:
        self._request = request
        self._wanted = None if request.ids is None else frozenset(request.ids)
        self._secrets = secrets
        secrets.parent.mkdir()
        secrets.mkdir(mode=0o700)
        self._lines: dict[str, int] = {}
        self._places: dict[str, str] = {}
        self.tasks: dict[str, Task] = {}
        """By id, without their images, in the order of the files."""
        self.report = ImportReport(order=_order(request))

    def read(self, path: Path, wanted: str | None) -> None:
        """Takes the rows of a file."""
        digest = check_file_digest(path, wanted)
        number = 0
        for row in rows_of(path):
            number += 1
            if isinstance(row, BadRow):
                self.report.bad_rows.append(str(row))
            elif self._wanted is not None and row.instance_id not in self._wanted:
                self.report.left_out += 1
            else:
                self._take(row, f"row {number} of {path.name}")
        self.report.sources.append(SourceFile(file=path.name, sha256=digest, rows=number))
        self.report.by_repo = dict(Counter(task.family for task in self.tasks.values()).most_common())

    def in_order(self) -> list[Task]:
        """The tasks in the order of training."""
        rates = self._request.pass_rates
        if rates is not None:
            looked_at = [CurriculumTask(task.id, task.family, self._lines[task.id]) for task in self.tasks.values()]
            return [self.tasks[task.id] for task in curriculum(looked_at, rates)]
        if self._request.ids is not None:
            return in_listed_order(self.tasks, self._request.ids)
        return list(self.tasks.values())

    def _take(self, row: R2ERow, place: str) -> None:
        if row.instance_id in self.tasks:
            self.report.bad_rows.append(f"{place}: {row.instance_id} stands in {self._places[row.instance_id]} too")
            return
        secrets = secrets_of(row)
        try:
            blob = secrets.blob()
        except NotCanonical as error:
            self.report.bad_rows.append(f"{place}: {row.instance_id} cannot be stored: {error}")
            return
        digest = hashlib.sha256(blob).hexdigest()
        _write_private(self._secrets / digest, blob)
        self.tasks[row.instance_id] = task_of(row, self._request.split, digest)
        self._lines[row.instance_id] = row.non_test_lines
        self._places[row.instance_id] = place
        if ambiguous := len(secrets.expected_tests().ambiguous):
            self.report.ambiguous_tests[row.instance_id] = ambiguous


def _order(request: ImportRequest) -> Order:
    if request.pass_rates is not None:
        return "curriculum"
    return "files" if request.ids is None else "ids"


def _write_private(path: Path, data: bytes) -> None:
    with suppress(FileExistsError), open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)


def read_ids(path: Path) -> tuple[str, ...]:
    """Ids of a file, one a line; blank lines do not count.

    Raises:
        CannotImport: it cannot be read, or is empty.
    """
    try:
        ids = tuple(line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    except (OSError, UnicodeDecodeError) as error:
        raise CannotImport(f"cannot read the ids in {path}: {error}") from error
    if not ids:
        raise CannotImport(f"{path} lists no id: wanted <owner>__<repository>-<commit>, one a line")
    return ids
