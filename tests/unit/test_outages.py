"""Waiting for stores that are away: how long, for what, and what is said meanwhile."""

import logging
import math

import pytest

from db.errors import BlobMissing, BlobStoreUnavailable, DatabaseRefused, DatabaseUnavailable, DiskFull
from db.outages import patiently, waiting_for


class Store:
    """Fails as it is told to, then answers."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.calls = 0
        self.said: list[str] = []
        """What the process said it waits for, at each call."""

    async def ask(self) -> str:
        self.calls += 1
        self.said += waiting_for()
        if self.failures:
            raise self.failures.pop(0)
        return "answer"


@pytest.mark.parametrize("failure", [DatabaseUnavailable("gone"), BlobStoreUnavailable("gone"), DiskFull("full")])
async def test_call_is_made_again_until_the_store_is_back(failure: Exception) -> None:
    store = Store(failure, failure)
    assert await patiently("the store", math.inf, store.ask) == "answer"
    assert store.calls == 3
    assert store.said == [f"waiting for the store: {failure}"] * 2
    assert waiting_for() == []


async def test_going_and_coming_back_are_a_line_each(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "db.outages"):
        await patiently("the store", math.inf, Store(DatabaseUnavailable("a"), DatabaseUnavailable("b")).ask)
    first, second = (record.getMessage() for record in caplog.records)
    assert first == "waiting for the store: a"
    assert second.startswith("the store is back after ")


async def test_who_does_not_wait_hears_of_it_at_once() -> None:
    store = Store(DatabaseUnavailable("gone"))
    with pytest.raises(DatabaseUnavailable, match="gone"):
        await patiently("the store", 0.0, store.ask)
    assert (store.calls, waiting_for()) == (1, [])


async def test_waiting_ends_when_the_time_is_up() -> None:
    store = Store(*[DatabaseUnavailable("gone")] * 50)
    with pytest.raises(DatabaseUnavailable):
        await patiently("the patient one", 0.5, store.ask)
    assert 2 <= store.calls < 10
    assert await patiently("the patient one", 0.0, Store().ask) == "answer"
    assert waiting_for() == []


@pytest.mark.parametrize("failure", [DatabaseRefused("no right"), BlobMissing("no blob"), ValueError("no")])
async def test_what_waiting_does_not_help_is_raised_at_once(failure: Exception) -> None:
    store = Store(failure)
    with pytest.raises(type(failure)):
        await patiently("the store", math.inf, store.ask)
    assert store.calls == 1
