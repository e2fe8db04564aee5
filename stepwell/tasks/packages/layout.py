"""What in a source distribution is the package, what its tests, and what the licence. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

LEFT_OUT = frozenset(
    {"docs", "doc", "examples", "example", "benchmark", "benchmarks", "bench", "fuzz", "tools", "scripts", "bin"}
)
"""Folders at the root that neither the package nor its tests need."""
TEST_FOLDERS = frozenset({"tests", "test"})
_NOT_PACKAGE = frozenset({"setup.py", "conftest.py", "noxfile.py", "tasks.py", "versioneer.py"})
_KEPT_AT_ROOT = re.compile(r"(LICEN[CS]E|COPYING|NOTICE|README|AUTHORS)(\.\w+)?", re.IGNORECASE)
_CLASSIFIERS = {
    "License :: OSI Approved :: MIT License": "MIT",
    "License :: OSI Approved :: BSD License": "BSD-3-Clause",
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
    "License :: OSI Approved :: ISC License (ISCL)": "ISC",
    "License :: OSI Approved :: Python Software Foundation License": "PSF-2.0",
}
_FIELD = re.compile(r"^(License-Expression|License): (.+)$", re.MULTILINE)


class NoTests(ValueError):
    """A source distribution has no package or no tests that tasks can be forged from."""


@dataclass(frozen=True)
class Layout:
    """Paths of a source distribution, relative to its one folder."""

    kept: tuple[str, ...]
    """Files of the work tree."""
    modules: tuple[str, ...]
    """Sources that may get a defect."""
    tests: tuple[str, ...]
    """Folders and files of the tests, none within another."""


def layout_of(paths: Iterable[str]) -> Layout:
    """The layout of a source distribution.

    Raises:
        NoTests: it has no tests, or no package.
    """
    pure = sorted(PurePosixPath(path) for path in paths)
    roots = _import_roots(pure)
    tests = _tests(pure)
    kept = [
        path
        for path in pure
        if any(path.is_relative_to(part) for part in (*roots, *tests))
        or (len(path.parts) == 1 and _KEPT_AT_ROOT.fullmatch(path.name))
    ]
    kept = [path for path in kept if path.suffix not in (".pyc", ".so", ".pyd")]
    modules = [
        path
        for path in kept
        if path.suffix == ".py"
        and any(path.is_relative_to(root) for root in roots)
        and not any(path.is_relative_to(test) for test in tests)
    ]
    if not modules or not tests:
        lacking = "package" if not modules else "tests"
        raise NoTests(f"the source distribution has no {lacking}: tasks are forged from a package with its own tests")
    return Layout(tuple(map(str, kept)), tuple(map(str, modules)), tuple(map(str, tests)))


def licence_of(metadata: str) -> str:
    """SPDX identifier from the text of a PKG-INFO; the text of its licence field where it has no identifier."""
    for line in metadata.splitlines():
        classifier = line.removeprefix("Classifier: ")
        if classifier in _CLASSIFIERS:
            found = _CLASSIFIERS[classifier]
            break
    else:
        found = ""
    fields = dict(_FIELD.findall(metadata))
    return fields.get("License-Expression") or found or fields.get("License", "unknown")


def _import_roots(paths: list[PurePosixPath]) -> list[PurePosixPath]:
    """Packages and modules that an `import` finds with the root or `src` on the path."""
    found: set[PurePosixPath] = set()
    for path in paths:
        inner = PurePosixPath(*path.parts[1:]) if path.parts[0] == "src" else path
        if inner.name == "__init__.py" and len(inner.parts) == 2 and inner.parts[0] not in LEFT_OUT | TEST_FOLDERS:
            found.add(path.parent)
        elif len(inner.parts) == 1 and inner.suffix == ".py" and not _is_test(inner) and inner.name not in _NOT_PACKAGE:
            found.add(path)
    return sorted(found)


def _tests(paths: list[PurePosixPath]) -> list[PurePosixPath]:
    found: set[PurePosixPath] = set()
    for path in paths:
        if path.parts[0] in LEFT_OUT or path.suffix != ".py":
            continue
        folders = [parent for parent in path.parents if parent.name in TEST_FOLDERS]
        if folders:
            found.add(folders[-1])
        elif len(path.parts) == 1 and _is_test(path):
            found.add(path)
    return sorted(found)


def _is_test(path: PurePosixPath) -> bool:
    return path.name.startswith("test_") or path.stem.endswith("_test") or path.stem in TEST_FOLDERS
