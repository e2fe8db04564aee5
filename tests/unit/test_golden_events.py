"""Stored events stay readable: one of each type and schema, as the bytes that a ledger holds."""

from pathlib import Path

import pytest

from stepwell.events import EVENT_TYPES, parse
from stepwell.events.envelope import open_envelope

GOLDEN = Path(__file__).parents[1] / "golden"
EXPECTED = [f"{name}-{schema}" for name, event in EVENT_TYPES.items() for schema in range(1, event.SCHEMA + 1)]


def test_every_type_and_schema_has_a_stored_example() -> None:
    assert sorted(path.stem for path in GOLDEN.glob("*.json")) == sorted(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_stored_event_is_read_and_written_as_the_same_bytes(name: str) -> None:
    exact = (GOLDEN / f"{name}.json").read_bytes()
    envelope = open_envelope(exact)
    event = parse(envelope.type, envelope.schema, dict(envelope.body))
    assert event.key() == envelope.key
    assert envelope.exact_bytes() == exact
    if envelope.schema == event.SCHEMA:
        assert event.body() == dict(envelope.body)
