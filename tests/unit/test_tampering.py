"""Whatever is done to a recorded run is found and located, by the audit and by the verifier that stands alone."""

from pathlib import Path

import pytest

from db.owners import OWNERS
from stepwell.audit import standalone
from stepwell.audit.rules.chains import LAST, TYPES
from stepwell.audit.signed import Anchor
from stepwell.events.canonical import canonical_json
from stepwell.events.streams import seal_stream
from stepwell.signing import SigningKey
from tests import audited_run
from tests.audited_run import KEY, write_run
from tests.book import MemoryBook, Told
from tests.run_plan import EVENTFUL, Plan
from tests.tamper_kinds import KINDS, Tamper
from tests.tampered import Copy, by_the_bundle, by_the_ledger

OF_TRIALS = {"run-set", "trial", "override"}
"""Kinds of stream that no run has, and no bundle."""


@pytest.fixture
async def held() -> Copy:
    """A finished run, in the hands of somebody."""
    book = MemoryBook()
    await write_run(book, "r", Plan())
    return Copy.of(book)


async def made(plan: Plan, lie: Told | None = None) -> Copy:
    """Another run of the same name."""
    book = MemoryBook(**({} if lie is None else {"lie": lie}))
    await write_run(book, "r", plan)
    return Copy.of(book)


PLANS = {"plain": Plan(), "eventful": EVENTFUL, "stopped": Plan(stopped_in=1), "unfinished": Plan(finish=False)}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
async def test_what_nobody_touched_holds(plan: Plan, tmp_path: Path) -> None:
    held = await made(plan)
    assert by_the_ledger(held, [held.anchor()]) == set()
    found = by_the_bundle(held, tmp_path / "b", key=KEY.public, anchors=[held.anchor()])
    assert found.faults == []
    assert found.signed.endswith(f"by {KEY.public}")


def test_the_verifier_that_stands_alone_knows_appenders_and_last_events_as_we_do() -> None:
    of_runs = TYPES.keys() - OF_TRIALS
    assert {kind: standalone.OWNERS.get(kind, "control") for kind in of_runs} == {
        kind: OWNERS[kind] for kind in of_runs
    }
    assert OWNERS.keys() - of_runs - OF_TRIALS == {"test"}
    assert set(standalone.LAST) == LAST & frozenset().union(*(TYPES[kind] for kind in of_runs))


def test_there_are_enough_kinds_and_each_has_a_name_of_its_own() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS) >= 30


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_a_change_is_found_where_it_is(kind: Tamper, held: Copy, tmp_path: Path) -> None:
    kind.how(held)
    ledger = by_the_ledger(held)
    assert any((stream, seq) == kind.place and rule in kind.rules for rule, stream, seq in ledger), ledger
    bundle = by_the_bundle(held, tmp_path / "b").faults
    assert any((stream, seq) == kind.place and rule in kind.rules for rule, stream, seq, _ in bundle), bundle


async def test_a_run_made_anew_beside_the_old_signatures_is_found(held: Copy, tmp_path: Path) -> None:
    other = await made(EVENTFUL)
    other.streams[seal_stream("r")] = held.streams[seal_stream("r")]
    assert ("seals", "run/r", 4) in by_the_ledger(other)
    assert {rule for rule, *_ in by_the_bundle(other, tmp_path / "b").faults} == {"seals"}


async def test_a_run_made_anew_with_another_key_is_found_by_who_has_the_key(
    held: Copy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audited_run, "KEY", SigningKey.of(b"\7" * 32))
    other = await made(EVENTFUL)
    alone = by_the_bundle(other, tmp_path / "alone")
    assert alone.faults == []
    assert any(said.startswith("no key was given") for said in alone.unproven)
    assert ("seals", "seal/r", 0) in {
        fault[:3] for fault in by_the_bundle(other, tmp_path / "k", key=KEY.public).faults
    }
    assert ("anchors", "seal/r", 0) in by_the_ledger(other, [held.anchor()])


async def test_a_run_made_anew_with_the_same_key_is_found_by_who_has_an_anchor(held: Copy, tmp_path: Path) -> None:
    other, anchor = await made(EVENTFUL), held.anchor()
    without = by_the_bundle(other, tmp_path / "without", key=KEY.public)
    assert without.faults == []
    assert any(said.startswith("no anchor was given") for said in without.unproven)
    anchored = by_the_bundle(other, tmp_path / "with", anchors=[anchor])
    assert [fault[:3] for fault in anchored.faults] == [("anchors", anchor.stream, anchor.seq)]
    assert by_the_ledger(other, [anchor]) == {("anchors", anchor.stream, anchor.seq)}


async def test_an_end_that_was_cut_off_is_found_by_who_has_an_anchor(held: Copy, tmp_path: Path) -> None:
    anchor, cut = held.anchor(), await made(Plan(steps=1, finish=False))
    for name in cut.streams:
        cut.streams[name] = held.streams[name][: len(cut.streams[name])]
    cut.blobs = held.blobs
    without = by_the_bundle(cut, tmp_path / "without", key=KEY.public)
    assert without.faults == []
    assert any(said.startswith("no anchor was given") for said in without.unproven)
    assert by_the_ledger(cut, [anchor]) == {("anchors", anchor.stream, anchor.seq)}
    anchored = by_the_bundle(cut, tmp_path / "with", anchors=[anchor])
    assert [fault[:3] for fault in anchored.faults] == [("anchors", anchor.stream, anchor.seq)]


async def test_a_run_without_signatures_holds_and_says_so(held: Copy, tmp_path: Path) -> None:
    del held.streams[seal_stream("r")]
    assert by_the_ledger(held) == set()
    found = by_the_bundle(held, tmp_path / "b")
    assert (found.faults, found.signed) == ([], "not signed")
    with_key = by_the_bundle(held, tmp_path / "key", key=KEY.public)
    assert [fault[:3] for fault in with_key.faults] == [("seals", "seal/r", 0)]


async def test_what_follows_the_last_signed_head_is_said_to_be_unproven(tmp_path: Path) -> None:
    found = by_the_bundle(await made(Plan(finish=False)), tmp_path / "b")
    assert "the last 1 events of health/r are in no signed head" in found.unproven


async def test_a_payload_that_was_left_out_or_deleted_holds_and_is_said_to_be_unproven(
    held: Copy, tmp_path: Path
) -> None:
    digest = held.body("rollout/r/0/0/0", 1)["payload"]
    del held.blobs[digest]
    held.withheld[digest] = "it names a person"
    found = by_the_bundle(held, tmp_path / "left out")
    assert found.faults == []
    assert f"blob {digest} of rollout/r/0/0/0 #1 is not there: it names a person" in found.unproven
    held.withheld.clear()
    assert ("blobs", "rollout/r/0/0/0", 1) in by_the_ledger(held)
    fields = {"digest": digest, "size_bytes": 22, "reason": "it names a person", "who": "ann@host"}
    event = {"actor": "control:a/1", "body": fields, "key": "deleted", "schema": 1, "type": "PayloadDeleted"}
    event["time"] = "2026-01-31T12:00:00.000000Z"
    held.rechain(f"deleted/{digest}", [canonical_json(event)])
    assert by_the_ledger(held) == set()
    deleted = by_the_bundle(held, tmp_path / "deleted")
    assert deleted.faults == []
    assert any("it names a person" in said for said in deleted.unproven)


@pytest.mark.parametrize("line", ["", "stepwell-anchor-1 a b", "x - seal/r 1 00", "stepwell-anchor-1 - seal/r one 00"])
def test_what_is_no_anchor_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="is no anchor"):
        Anchor.parse(line)


def test_an_anchors_line_is_read_again() -> None:
    anchors = [Anchor("ab" * 32, "seal/r", 4, "0" * 64), Anchor("", "run/r", 0, "1" * 64)]
    assert [Anchor.parse(anchor.line()) for anchor in anchors] == anchors
