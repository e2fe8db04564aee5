"""Fixtures for all tests: the three real services, started once a session when the first test asks for them."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from stepwell.sandbox.folders import temporary_folder
from workers.services.addresses import Addresses
from workers.services.lifecycle import held

# A slow machine is no failure of what is tested.
settings.register_profile("stepwell", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("stepwell")

pytest_plugins = (
    "tests.nothing_left",
    "tests.stack.database",
    "tests.stack.sandbox_kinds",
    "tests.stack.rollout_stage",
    "tests.stack.harness_stage",
    "tests.stack.small_images",
    "tests.stack.small_trials",
    "tests.stack.tiny_run",
    "tests.stack.steering",
)


@pytest.fixture(scope="session")
def services_home() -> Iterator[Path]:
    """Home of the session's services; removed at the end."""
    with temporary_folder("stepwell-test-") as folder:
        yield folder


@pytest.fixture(scope="session")
def services(services_home: Path) -> Iterator[Addresses]:
    """Temporal, PostgreSQL and S3, shared by the session's tests; they die with pytest.

    Addresses in the environment of whoever runs the tests are not used: tests write.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("STEPWELL_")]:
            patch.delenv(name)
        with held(services_home) as addresses:
            yield addresses
