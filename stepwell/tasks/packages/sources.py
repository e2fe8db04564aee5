"""Source distributions that tasks are forged from: which, in what form, and how they get here."""

import ctypes
import hashlib
import signal
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

DOWNLOAD_TIMEOUT_S = 300.0
_PR_SET_PDEATHSIG = 1


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
    kept: tuple[str, ...]
    """Files and folders of the archive that make the work tree."""
    mutated: tuple[str, ...]
    """Modules that get defects: those that the tests test for themselves."""
    tests: str
    """Folder of the package's tests."""

    @property
    def archive(self) -> str:
        """Name of the archive."""
        return f"{self.name}-{self.version}.tar.gz"


PACKAGES = {
    "toolz": PackageSource(
        name="toolz",
        version="1.0.0",
        sha256="2c86e3d9a04798ac556793bced838816296a2f085017664e4995cb40a1047a02",
        licence="BSD-3-Clause",
        kept=("toolz", "tlz", "LICENSE.txt", "README.rst"),
        mutated=("toolz/dicttoolz.py", "toolz/functoolz.py", "toolz/itertoolz.py", "toolz/recipes.py"),
        tests="toolz/tests",
    ),
}


def source_files(source: PackageSource, cache: Path) -> dict[str, str]:
    """Path to text of the work tree without a defect, tests included; downloaded once into `cache`.

    Raises:
        PackageUnavailable: it is neither there nor to be had, or is not what was pinned.
    """
    archive = cache / source.archive
    if not archive.is_file() or _sha256(archive) != source.sha256:
        _download(source, archive)
    files: dict[str, str] = {}
    with tarfile.open(archive, "r:gz") as opened:
        for member in opened.getmembers():
            path = PurePosixPath(*PurePosixPath(member.name).parts[1:])
            content = opened.extractfile(member) if member.isfile() else None
            if content is not None and any(path.is_relative_to(kept) for kept in source.kept):
                files[str(path)] = content.read().decode()
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
