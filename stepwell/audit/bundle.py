"""A run in files: its events, its blobs, and the program that checks them without Stepwell (`standalone.py`).

bundle.json     {"bundle": 1, "run": NAME, "withheld": {DIGEST: REASON}}
events.txt      a line an event: its hash, a space, its exact bytes (canonical JSON has no line break)
blobs/ab/abc…   bytes under their SHA-256
verify.py       the verifier
"""

import json
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from stepwell.audit import standalone

FORM = 1


class BundleExists(ValueError):
    """There is something where a bundle is to be written."""


class BundleWriter:
    """Writes a bundle to a folder, or to a tar file for a name that ends in `.tar`: whole, or not at all.

    Args:
        out: Where it appears when all of it is written.

    Raises:
        BundleExists: there is something.
        OSError: it cannot be written.
    """

    def __init__(self, out: Path) -> None:
        if out.exists():
            raise BundleExists(f"{out} exists: a bundle is not written over it; name another or remove it")
        self._out = out
        self._folder = out.with_name(f".{out.name}.partial")
        shutil.rmtree(self._folder, ignore_errors=True)  # what a writer that was killed has left
        (self._folder / "blobs").mkdir(parents=True)
        self._events = (self._folder / "events.txt").open("wb")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._events.close()
        shutil.rmtree(self._folder, ignore_errors=True)  # nothing is there any more if it was finished

    def add_event(self, hash: str, exact: bytes) -> None:
        """The next event; those of one stream come in their order."""
        self._events.write(b"%b %b\n" % (hash.encode(), exact))

    def add_blob(self, digest: str, data: bytes) -> None:
        """A blob."""
        self.blob_path(digest).write_bytes(data)

    def blob_path(self, digest: str) -> Path:
        """Where a blob is to be written; its folder is there."""
        path = self._folder / "blobs" / digest[:2] / digest
        path.parent.mkdir(exist_ok=True)
        return path

    def finish(self, run: str, withheld: Mapping[str, str]) -> None:
        """Writes the rest, and lets the bundle appear.

        Args:
            run: Name of the run.
            withheld: Blobs that are left out, with the reasons.
        """
        self._events.close()
        info = {"bundle": FORM, "run": run, "withheld": dict(withheld)}
        (self._folder / "bundle.json").write_text(json.dumps(info, indent=1, sort_keys=True) + "\n")
        shutil.copyfile(Path(standalone.__file__), self._folder / "verify.py")
        if self._out.suffix != ".tar":
            self._folder.rename(self._out)
            return
        packed = self._folder.with_suffix(".tar.partial")
        try:
            with tarfile.open(packed, "w") as tar:
                for path in sorted(path for path in self._folder.rglob("*") if path.is_file()):
                    name = f"{self._out.stem}/{path.relative_to(self._folder)}"
                    tar.add(path, arcname=name, filter=_without_circumstances)
            packed.rename(self._out)
        finally:
            packed.unlink(missing_ok=True)


def _without_circumstances(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """The same run gives the same bytes, whoever packs it and when."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    member.mode = 0o644
    return member
