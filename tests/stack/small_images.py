"""The image that tests of Apptainer start in, built once a session."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from stepwell.sandbox.folders import temporary_folder
from stepwell.sandbox.images import ImageError, find_apptainer
from tests.r2e_image import make_r2e_sif
from tests.small_image import make_root, make_sif


@pytest.fixture(scope="session")
def small_root() -> Iterator[Path]:
    """The unpacked root of the image."""
    with temporary_folder("stepwell-test-") as folder:
        make_root(folder / "root")
        yield folder / "root"


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
    with temporary_folder("stepwell-test-") as folder:
        make_sif(small_root, folder / "small.sif")
        yield folder / "small.sif"


@pytest.fixture(scope="session")
def r2e_sif(small_root: Path, apptainer_program: Path) -> Iterator[Path]:
    """An image like those of R2E-Gym."""
    with temporary_folder("stepwell-test-") as folder:
        yield make_r2e_sif(small_root, folder)
