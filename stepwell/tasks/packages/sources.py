"""Source distributions that tasks are forged from: which, and how they get here."""

import ctypes
import hashlib
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zlib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path, PurePosixPath

from stepwell.tasks.packages.layout import Layout, NoTests, layout_of, licence_of

DOWNLOAD_TIMEOUT_S = 300.0
ARCHIVE_BYTES = 32 << 20
"""Most bytes of files that are read out of an archive."""
_PR_SET_PDEATHSIG = 1
_NAME_OR_VERSION = re.compile(r"^(Name|Version): (.+)$", re.MULTILINE)


class PackageUnavailable(RuntimeError):
    """A source distribution could not be had."""


@dataclass(frozen=True)
class PackageSource:
    """One source distribution, pinned."""

    name: str
    version: str
    sha256: str
    """Of the archive."""
    licence: str
    """SPDX identifier; its text stays in every work tree."""

    @property
    def archive(self) -> str:
        """Name of the archive."""
        return f"{self.name.replace('-', '_')}-{self.version}.tar.gz"


@dataclass(frozen=True)
class PackageTree:
    """A source distribution, read."""

    source: PackageSource
    files: dict[str, str]
    """Path to text of the work tree without a defect, tests included."""
    layout: Layout


@cache
def _pinned() -> dict[str, PackageSource]:
    text = resources.files("stepwell.tasks.packages").joinpath("packages.toml").read_text("utf-8")
    return {entry["name"]: PackageSource(**entry) for entry in tomllib.loads(text)["package"]}


PACKAGES = _pinned()
"""By name: those of `packages.toml`."""


def source_tree(source: PackageSource, cache: Path) -> PackageTree:
    """The tree of a pinned source distribution, which is downloaded once into `cache`.

    Raises:
        PackageUnavailable: it is neither there nor to be had, or is not what was pinned.
        NoTests: it has no tests.
    """
    archive = cache / source.archive
    if not archive.is_file() or _sha256(archive) != source.sha256:
        _download(source, archive)
    return _tree(source, _files(archive))


def archive_tree(archive: Path) -> PackageTree:
    """The tree of any source distribution in a file; name, version and licence are those of its metadata.

    Raises:
        PackageUnavailable: the file cannot be read.
        NoTests: it has no package, no tests, or no metadata.
    """
    try:
        files = _files(archive)
        digest = _sha256(archive)
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise PackageUnavailable(f"{archive} is no source distribution: {said}; name a .tar.gz file") from error
    metadata = files.get("PKG-INFO", "")
    fields = dict(_NAME_OR_VERSION.findall(metadata))
    if len(fields) < 2:
        raise NoTests(f"{archive} has no PKG-INFO with a name and a version: build it with `python -m build --sdist`")
    source = PackageSource(fields["Name"].strip(), fields["Version"].strip(), digest, licence_of(metadata))
    try:
        return _tree(source, files)
    except NoTests as error:
        raise NoTests(f"{archive}: {error}") from error


def _tree(source: PackageSource, files: dict[str, str]) -> PackageTree:
    layout = layout_of(files)
    return PackageTree(source, {path: files[path] for path in layout.kept}, layout)


def _files(archive: Path) -> dict[str, str]:
    """Path below the archive's one folder to text; what is no UTF-8 is left out."""
    files: dict[str, str] = {}
    left = ARCHIVE_BYTES
    with tarfile.open(archive, "r:gz") as opened:
        for member in opened.getmembers():
            parts = PurePosixPath(member.name).parts[1:]
            content = opened.extractfile(member) if member.isfile() and parts and ".." not in parts else None
            left -= member.size
            if left < 0:
                raise tarfile.TarError(f"more than {ARCHIVE_BYTES} bytes of files")
            if content is not None:
                try:
                    files[str(PurePosixPath(*parts))] = content.read().decode()
                except UnicodeDecodeError:
                    continue
    return files


def _download(source: PackageSource, archive: Path) -> None:
    """By pip, which checks the digest and honours the user's index and proxies."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        pinned = Path(folder) / "requirements.txt"
        pinned.write_text(f"{source.name}=={source.version} --hash=sha256:{source.sha256}\n")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", source.name]
        command += ["--require-hashes", "--disable-pip-version-check", "--dest", folder, "--requirement", str(pinned)]
        try:
            subprocess.run(
                command,
                capture_output=True,
                text=True,
                check=True,
                timeout=DOWNLOAD_TIMEOUT_S,
                process_group=0,
                preexec_fn=_die_with_parent,
            )
        except subprocess.CalledProcessError as error:
            raise PackageUnavailable(_offline(source, archive, error.stderr.strip()[-1000:])) from error
        except subprocess.TimeoutExpired as error:
            raise PackageUnavailable(_offline(source, archive, f"no answer in {DOWNLOAD_TIMEOUT_S} s")) from error
        found = Path(folder) / source.archive
        if not found.is_file() or _sha256(found) != source.sha256:
            raise PackageUnavailable(_offline(source, archive, "the index gave another archive"))
        found.replace(archive)


def _die_with_parent() -> None:
    """Runs in the child: it is killed when the thread that started it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _offline(source: PackageSource, archive: Path, said: str) -> str:
    return (
        f"the source of {source.name} {source.version} could not be downloaded by pip: {said}; "
        f"connect to a package index, or put the archive with SHA-256 {source.sha256} at {archive}"
    )


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
