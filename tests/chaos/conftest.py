"""Fixtures of the chaos suite: the table that its tests add rows to, and the database where kill points are set."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo

from tests.chaos.table import ChaosTable, wanted_page, write
from tests.stack.database import DatabaseUrls
from workers.services.addresses import Addresses
from workers.services.home import Home
from workers.services.postgres import DATABASE, SUPERUSER
from workers.services.settings import load_settings


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests of this folder."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.chaos)


@pytest.fixture(scope="session")
def chaos_table(request: pytest.FixtureRequest) -> Iterator[ChaosTable]:
    """Rows of the session's faults; printed at its end, and written to docs/recovery.md by the whole `make chaos`."""
    table = ChaosTable()
    yield table
    if not table.rows:
        return
    written = table.markdown()
    terminal = request.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None:
        terminal.write(f"\n{written}")
    page = wanted_page()
    if page is not None:
        write(page, written)


@pytest.fixture
def superuser(services: Addresses, services_home: Path, database: DatabaseUrls) -> str:
    """The services' database, as its superuser."""
    settings = load_settings(Home.of(services_home))
    assert settings is not None
    password, port = settings.superuser_password, settings.ports.postgres
    return make_conninfo(host="127.0.0.1", port=port, dbname=DATABASE, user=SUPERUSER, password=password)
