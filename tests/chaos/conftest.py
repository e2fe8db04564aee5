"""Fixtures of the chaos suite: the table that its tests add rows to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.table import ChaosTable, wanted_page, write


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
