"""The image that tests of Apptainer start in, built once a session."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepwell.sandbox.images import ImageError, find_apptainer
from tests.r2e_image import make_r2e_sif
from tests.small_image import make_root, make_sif


@pytest.fixture(scope="session")
def small_root() -> Iterator[Path]:
    """The unpacked root of the image."""
    with tempfile.TemporaryDirectory(prefix="stepwell-test-root-") as folder:
        make_root(Path(folder) / "root")
        yield Path(folder) / "root"


@pytest.fixture(scope="session")
def apptainer_program() -> Path:
    """The program; where there is none the test is skipped."""
    try:
        return find_apptainer()
    except ImageError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def small_sif(small_root: Path, apptainer_program: Path) -> Iterator[Path]:
    """The image."""
    with tempfile.TemporaryDirectory(prefix="stepwell-test-image-") as folder:
        make_sif(small_root, Path(folder) / "small.sif")
        yield Path(folder) / "small.sif"


@pytest.fixture(scope="session")
def r2e_sif(small_root: Path, apptainer_program: Path) -> Iterator[Path]:
    """An image like those of R2E-Gym."""
    with tempfile.TemporaryDirectory(prefix="stepwell-test-image-") as folder:
        yield make_r2e_sif(small_root, Path(folder))
