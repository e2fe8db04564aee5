"""Appending, reading and fencing on a real Postgres."""

import asyncio

import psycopg
import pytest
from sqlalchemy import text

from db.database import Database
from db.errors import DatabaseUnavailable, Fenced, NotOwner
from db.ledger import Ledger
from db.recorded import Head
from stepwell.events import AttemptOpened, GroupOpened, RolloutFailed, TurnRecorded
from stepwell.events.canonical import NotCanonical
from tests.stack.database import DatabaseUrls

SANDBOX = "sandbox:test"


def opened(attempt: str) -> AttemptOpened:
    return AttemptOpened(attempt=attempt, worker="w", resumed_at=0)


def turn(number: int, *, tool: str = "view", generate_s: float = 0.5) -> TurnRecorded:
    return TurnRecorded(
        turn=number,
        epoch=0,
        payload="0" * 64,
        version=0,
        prompt_tokens=10,
        generated_tokens=3,
        tool=tool,
        tree="t",
        engine="e",
        generate_s=generate_s,
        tool_s=0.25,
    )


@pytest.fixture
def rollout(fresh) -> str:
    """Name of a rollout stream that does not exist."""
    return f"rollout/{fresh()}/0/0/0"


async def test_events_are_read_back_as_appended(ledger: Ledger, rollout: str) -> None:
    events = [opened("a"), turn(0), turn(1)]
    head = await ledger.append(rollout, events, expected_seq=0, actor=SANDBOX)
    recorded = await ledger.read(rollout)
    assert [each.event for each in recorded] == events
    assert [each.seq for each in recorded] == [0, 1, 2]
    assert {each.envelope.actor for each in recorded} == {SANDBOX}
    assert recorded[-1].head == head == await ledger.head(rollout)
    assert [each.seq for each in await ledger.read(rollout, from_seq=2)] == [2]


async def test_a_stream_grows_by_appends_at_its_end_and_verifies(ledger: Ledger, rollout: str) -> None:
    await ledger.append(rollout, [opened("a")], expected_seq=0, actor=SANDBOX)
    await ledger.append(rollout, [turn(0), turn(1)], expected_seq=1, actor=SANDBOX)
    head = await ledger.append(rollout, [turn(2)], expected_seq=3, actor=SANDBOX)
    assert head.seq == 3
    assert await ledger.verify_stream(rollout) == head


async def test_a_stream_that_does_not_exist_is_empty(ledger: Ledger, rollout: str) -> None:
    assert await ledger.read(rollout) == []
    assert await ledger.head(rollout) is None
    assert await ledger.verify_stream(rollout) is None


async def test_a_repeated_append_succeeds_with_the_same_head(ledger: Ledger, rollout: str) -> None:
    events = [opened("a"), turn(0)]
    first = await ledger.append(rollout, events, expected_seq=0, actor=SANDBOX)
    await ledger.append(rollout, [turn(1)], expected_seq=2, actor=SANDBOX)
    assert await ledger.append(rollout, events, expected_seq=0, actor="sandbox:other") == first
    assert len(await ledger.read(rollout)) == 3


async def test_a_repeated_append_may_differ_in_what_was_measured(ledger: Ledger, rollout: str) -> None:
    first = await ledger.append(rollout, [turn(0, generate_s=0.5)], expected_seq=0, actor=SANDBOX)
    assert await ledger.append(rollout, [turn(0, generate_s=9.0)], expected_seq=0, actor=SANDBOX) == first


async def test_an_append_whose_keys_all_stand_elsewhere_succeeds(ledger: Ledger, rollout: str) -> None:
    await ledger.append(rollout, [opened("a"), turn(0), turn(1)], expected_seq=0, actor=SANDBOX)
    head = await ledger.append(rollout, [turn(0)], expected_seq=3, actor=SANDBOX)
    assert head.seq == 1


@pytest.mark.parametrize(
    ("expected_seq", "events", "key", "why"),
    [
        (0, [opened("b")], "attempt/b", "'attempt/a' stands there, by sandbox:test"),
        (2, [turn(0, tool="edit")], "turn/0/0", "the same key stands at #1 for other facts"),
        (1, [turn(0), turn(1)], "turn/0/1", "'turn/0/0' stands there"),
        (2, [turn(1), turn(0, tool="edit")], "turn/0/1", "not yet|stands"),
        (7, [turn(1)], "turn/0/1", "no event before it"),
    ],
    ids=["place taken", "key for other facts", "only the first stands", "second conflicts", "gap"],
)
async def test_any_other_conflict_is_fenced_and_appends_nothing(
    ledger: Ledger, rollout: str, expected_seq: int, events: list, key: str, why: str
) -> None:
    await ledger.append(rollout, [opened("a"), turn(0)], expected_seq=0, actor=SANDBOX)
    with pytest.raises(Fenced, match=why) as fenced:
        await ledger.append(rollout, events, expected_seq=expected_seq, actor=SANDBOX)
    assert (fenced.value.stream, fenced.value.expected, fenced.value.found) == (rollout, expected_seq, 2)
    assert fenced.value.key == key
    assert len(await ledger.read(rollout)) == 2


async def test_a_new_attempt_fences_the_one_before(ledger: Ledger, rollout: str) -> None:
    await ledger.append(rollout, [opened("old"), turn(0)], expected_seq=0, actor="sandbox:old")
    await ledger.append(rollout, [opened("new")], expected_seq=2, actor="sandbox:new")
    with pytest.raises(Fenced):
        await ledger.append(rollout, [turn(1)], expected_seq=2, actor="sandbox:old")
    await ledger.append(rollout, [turn(1)], expected_seq=3, actor="sandbox:new")


async def test_of_many_tasks_that_race_for_one_place_one_wins(ledger: Ledger, rollout: str) -> None:
    for seq in range(5):
        results = await asyncio.gather(
            *(ledger.append(rollout, [opened(f"{seq}-{n}")], expected_seq=seq, actor=f"sandbox:{n}") for n in range(8)),
            return_exceptions=True,
        )
        assert all(isinstance(result, Head | Fenced) for result in results)
        assert sum(isinstance(result, Head) for result in results) == 1
    assert (await ledger.verify_stream(rollout)).seq == 4


async def test_of_many_tasks_that_say_the_same_all_succeed(ledger: Ledger, rollout: str) -> None:
    heads = await asyncio.gather(
        *(ledger.append(rollout, [turn(0), turn(1)], expected_seq=0, actor=f"sandbox:{n}") for n in range(8))
    )
    assert len(set(heads)) == 1
    assert len(await ledger.read(rollout)) == 2


@pytest.mark.parametrize(
    ("stream", "actor", "error"),
    [
        ("rollout/r/0/0/0", "trainer:me", NotOwner),
        ("weights/r", "sandbox:me", NotOwner),
        ("run/r", "operator:me", NotOwner),
        ("prompt/r/0/0", "engine:me", NotOwner),
        ("rollout/r/0/0/0", "someone:me", ValueError),
        ("rollout/r/0/0/0", "sandbox", ValueError),
        ("nothing/r", "sandbox:me", ValueError),
        ("rollout", "sandbox:me", ValueError),
    ],
)
async def test_only_the_owner_of_a_kind_of_stream_appends_to_it(
    ledger: Ledger, stream: str, actor: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        await ledger.append(stream, [opened("a")], expected_seq=0, actor=actor)
    assert await ledger.head(stream) is None


async def test_an_event_without_canonical_form_is_refused(ledger: Ledger, rollout: str) -> None:
    with pytest.raises(NotCanonical, match="no canonical JSON"):
        await ledger.append(rollout, [opened("a"), turn(0, generate_s=float("nan"))], expected_seq=0, actor=SANDBOX)
    assert await ledger.read(rollout) == []


@pytest.mark.parametrize(
    "events", [[], [turn(0), turn(0)], [opened("\0")]], ids=["none", "one key twice", "a NUL in a key"]
)
async def test_an_append_has_events_with_distinct_keys(ledger: Ledger, rollout: str, events: list) -> None:
    with pytest.raises(ValueError, match="distinct keys"):
        await ledger.append(rollout, events, expected_seq=0, actor=SANDBOX)


async def test_text_of_any_language_and_control_characters_survive(ledger: Ledger, rollout: str) -> None:
    event = RolloutFailed(failure="infra", cause='d\u00e9j\u00e0 \u4f60\u597d \U0001f600 \x00\x1f\u2028 \\ "')
    await ledger.append(rollout, [event], expected_seq=0, actor=SANDBOX)
    assert (await ledger.read(rollout))[0].event == event
    assert (await ledger.verify_stream(rollout)).seq == 0


async def test_streams_are_found_by_prefix_the_oldest_first(ledger: Ledger, fresh) -> None:
    run = fresh()
    names = [f"rollout/{run}/0/0/{sample}" for sample in (2, 0, 10, 1)]
    for name in names:
        await ledger.append(name, [opened("a"), turn(0)], expected_seq=0, actor=SANDBOX)
    await ledger.append(f"rollout/{run}x/0/0/0", [opened("a")], expected_seq=0, actor=SANDBOX)
    prefix = f"rollout/{run}/"
    assert await ledger.streams(prefix) == names
    heads = await ledger.heads(prefix)
    assert {name: head.seq for name, head in heads.items()} == dict.fromkeys(names, 1)
    recorded = await ledger.read_prefix(prefix)
    assert [(each.stream, each.seq) for each in recorded] == [(name, seq) for name in sorted(names) for seq in (0, 1)]
    many = await ledger.read_many([names[0], f"rollout/{run}/9/9/9"])
    assert {name: len(events) for name, events in many.items()} == {names[0]: 2, f"rollout/{run}/9/9/9": 0}


async def test_time_is_the_databases_whatever_the_order_of_kinds(ledger: Ledger, fresh, connections: Database) -> None:
    stream = f"prompt/{fresh()}/0/0"
    before = (await connections.rows(text("SELECT clock_timestamp() AS at"), {}))[0].at
    await ledger.append(
        stream, [GroupOpened(task="t", task_id="i", version=0, samples=1)], expected_seq=0, actor="control:c"
    )
    after = (await connections.rows(text("SELECT clock_timestamp() AS at"), {}))[0].at
    (only,) = await ledger.read(stream)
    utc = "%Y-%m-%dT%H:%M:%S.%fZ"
    assert before.strftime(utc) <= only.envelope.time <= after.strftime(utc)


async def test_a_connection_that_the_database_closed_is_replaced(database: DatabaseUrls, rollout: str) -> None:
    alone = Database(database.appender, pool_size=1)
    ledger = Ledger(alone)
    await ledger.append(rollout, [opened("a")], expected_seq=0, actor=SANDBOX)
    (backend,) = await alone.rows(text("SELECT pg_backend_pid() AS pid"), {})
    with psycopg.connect(database.appender, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [backend.pid])
    assert (await ledger.append(rollout, [turn(0)], expected_seq=1, actor=SANDBOX)).seq == 1
    await alone.close()


async def test_no_database_is_one_clear_error(unused_tcp_port: int) -> None:
    nowhere = Database(f"postgresql://someone:secret@127.0.0.1:{unused_tcp_port}/nothing")
    with pytest.raises(DatabaseUnavailable, match="STEPWELL_DATABASE_URL") as error:
        await Ledger(nowhere).head("run/r")
    assert "secret" not in str(error.value)
    await nowhere.close()
