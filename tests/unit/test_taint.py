"""Which versions a mark taints, and what an operator's marks make of the ledger."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.audit.taint import Part, clearing, marking, standing_marks, taint_of, taint_of_record
from stepwell.audit.verification import verify
from stepwell.events import RolloutCleared, RolloutTainted
from stepwell.events.base import Event
from tests.audited_run import write_run
from tests.book import Lie, MemoryBook, Told, dropped, failing
from tests.run_plan import EVENTFUL
from tests.told import told


def placed(*events: Event) -> list[tuple[int, Event]]:
    return list(enumerate(events))


def marks(*places: str) -> dict:
    return standing_marks(placed(*(told(RolloutTainted, rollout=f"rollout/r/{place}") for place in places)))


@pytest.mark.parametrize(
    ("places", "first", "last_clean"),
    [
        (("3/0/1",), 4, 3),
        (("5/0/0", "2/1/0", "v4-main/0/0"), 3, 2),
        (("0/0/0",), 1, 0),
        (("v4-main/0/0",), None, 7),
        (("9/0/0",), 10, 7),
    ],
)
def test_the_first_step_with_a_marked_rollout_makes_the_first_tainted_version(
    places: tuple[str, ...], first: int | None, last_clean: int
) -> None:
    found = taint_of(marks(*places), 7, lambda _: True)
    assert (found.first_version, found.last_clean_version) == (first, last_clean)
    assert list(found.versions) == ([] if first is None else list(range(first, 8)))


@pytest.mark.parametrize(
    ("is_trained", "part", "first"),
    [(True, Part.TRAINED, 4), (None, Part.WAITING, 4), (False, Part.LEFT_OUT, None)],
)
def test_a_rollout_taints_what_its_group_is_trained_into(
    is_trained: bool | None, part: Part, first: int | None
) -> None:
    found = taint_of(marks("3/0/1"), 7, lambda _: is_trained)
    assert (found.parts["rollout/r/3/0/1"], found.first_version) == (part, first)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=12))
def test_marking_and_clearing_are_idempotent_and_end_as_last_asked(asks: list[tuple[bool, int]]) -> None:
    events: list[Event] = []
    wanted: set[str] = set()
    for is_mark, sample in asks:
        rollout = f"rollout/r/0/0/{sample}"
        plan = marking if is_mark else clearing
        events += plan(placed(*events), [rollout, rollout], "ann@host", "because")
        wanted = wanted | {rollout} if is_mark else wanted - {rollout}
        assert plan(placed(*events), [rollout], "bob@host", "again") == []
    assert set(standing_marks(placed(*events))) == wanted
    keys = [event.key() for event in events]
    assert len(set(keys)) == len(keys)


async def test_an_audit_tells_the_taint_and_no_rule_fails_for_it() -> None:
    book = MemoryBook()
    await write_run(book, "r", EVENTFUL)
    verification = verify(book.record("r"))
    assert failing(verification) == {}
    assert (
        verification.taint.words()
        == "1 rollout is marked as tainted, so versions 2 to 3 are; the last clean version is 1"
    )
    assert taint_of_record(book.record("r")) == verification.taint


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        (
            Told(RolloutTainted, {"rollout": "rollout/r/7/7/7"}, key="taint/0/rollout/r/1"),
            "which is no rollout of the run",
        ),
        (Told(RolloutTainted, {"reason": ""}, key="taint/0/rollout/r/1"), "by nobody, or without reason"),
        (
            Told(RolloutTainted, {"number": 1}, key="taint/0/rollout/r/1"),
            "mark 1 of rollout/r/1/1/0, which has 0 before",
        ),
        (Told(RolloutCleared, {"number": 3}), "mark 3 of rollout/r/0/0/0 taken back, which does not stand"),
        (dropped(RolloutTainted, rollout="rollout/r/0/0/0"), "mark 0 of rollout/r/0/0/0 taken back"),
    ],
    ids=["of nothing", "without a reason", "misnumbered", "cleared by a wrong number", "cleared unmarked"],
)
async def test_a_mark_that_cannot_be_is_found(lie: Lie, said: str) -> None:
    book = MemoryBook(lie=lie)
    await write_run(book, "r", EVENTFUL)
    found = failing(verify(book.record("r")))
    assert list(found) == ["quarantine"]
    assert said in found["quarantine"]
