"""Fixtures of the chaos suite: the table that its tests add rows to."""

from collections.abc import Iterator

import pytest

from tests.chaos.table import ChaosTable, wanted_page, write


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
