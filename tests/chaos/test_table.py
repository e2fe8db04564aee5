"""What the table says, and that writing it keeps what people wrote."""

from pathlib import Path

import pytest

from tests.chaos.faults import (
    LedgerRow,
    apart,
    appends_of,
    each_type_once,
    every_fault,
    place_of,
    spread,
    stream_pattern,
)
from tests.chaos.table import BEGIN, SAME, ChaosTable, Row, write

ROWS = [
    LedgerRow("run/chaos", "RunCreated", 1, "command"),
    LedgerRow("engine/chaos/transformers-1a", "VersionAttested", 2, "engine"),
    LedgerRow("rollout/chaos/0/0/1", "AttemptOpened", 3, "sandbox"),
    LedgerRow("rollout/chaos/0/0/1", "TurnRecorded", 4, "sandbox"),
    LedgerRow("rollout/chaos/0/0/1", "TurnRecorded", 5, "sandbox"),
    LedgerRow("rollout/chaos/0/0/1", "RolloutEnded", 5, "sandbox"),
]


def test_appends_name_their_events_by_place_and_share_a_fault_by_transaction() -> None:
    appends = appends_of(ROWS, "chaos")
    assert [str(append) for append in appends] == [
        "run RunCreated",
        "engine VersionAttested",
        "rollout/0/0/1 AttemptOpened",
        "rollout/0/0/1 TurnRecorded",
        "rollout/0/0/1 TurnRecorded 1, RolloutEnded",
    ]
    assert len(every_fault(appends)) == 10


def test_each_type_is_hit_once_on_either_side_in_turn() -> None:
    faults = each_type_once(appends_of(ROWS, "chaos"))
    assert [fault.append.events[-1].type for fault in faults] == [
        "RunCreated",
        "VersionAttested",
        "AttemptOpened",
        "TurnRecorded",
        "RolloutEnded",
    ]
    assert [fault.moment for fault in faults] == ["before", "after", "before", "after", "before"]


def test_spread_loses_no_fault_and_weighs_them() -> None:
    faults = every_fault(appends_of(ROWS, "chaos"))
    plans = spread(faults, 3, {"engine": 10.0, "sandbox": 5.0, "command": 1.0})
    assert sorted(map(str, faults)) == sorted(str(fault) for plan in plans for fault in plan)
    assert max(len(plan) for plan in plans) - min(len(plan) for plan in plans) <= 2


def test_faults_of_one_run_are_far_apart() -> None:
    faults = every_fault(appends_of(ROWS, "chaos"))
    plans = apart(faults, 3)
    assert sorted(map(str, faults)) == sorted(str(fault) for plan in plans for fault in plan)
    assert [len(plan) for plan in plans] == [3, 3, 2, 2]
    assert plans[0] == [faults[0], faults[4], faults[8]]


def test_events_that_depend_on_timing_are_no_kill_points() -> None:
    rows = [LedgerRow("health/chaos", type, xid, "control") for xid, type in enumerate(("UsageRecorded",) * 2)]
    rows.append(LedgerRow("health/chaos", "StallBegan", 9, "control"))
    assert [str(append) for append in appends_of(rows, "chaos")] == ["health UsageRecorded"]


def test_engines_are_counted_together() -> None:
    rows = [LedgerRow(f"engine/chaos/{name}", "VersionAttested", xid, "engine") for xid, name in enumerate("ab")]
    assert [str(append) for append in appends_of(rows, "chaos")] == [
        "engine VersionAttested",
        "engine VersionAttested 1",
    ]


@pytest.mark.parametrize(
    ("stream", "place", "pattern"),
    [
        ("run/chaos", "run", "run/chaos"),
        ("prompt/chaos/v2-main/0", "prompt/v2-main/0", "prompt/chaos/v2-main/0"),
        ("engine/chaos/transformers-1a", "engine", "engine/chaos/%"),
        ("verdict/0a1b", "verdict/0a1b", "verdict/0a1b"),
    ],
)
def test_place_of_a_stream_and_back(stream: str, place: str, pattern: str) -> None:
    assert place_of(stream, "chaos") == place
    assert stream_pattern(place, "chaos") == pattern


def test_writing_keeps_the_introduction_and_replaces_the_rest(tmp_path: Path) -> None:
    page = tmp_path / "recovery.md"
    page.write_text(f"# Recovery\n\nBy hand.\n\n{BEGIN}\n\nold\n")
    table = ChaosTable()
    table.add(Row("Kills", "before run RunCreated", "command", "SIGKILL", SAME, recovery_s=2.0, work_lost_s=0.25))
    table.add(Row("Kills", "after run RunCreated", "command", "SIGKILL", "other weights", recovery_s=4.0, hung=True))
    write(page, table.markdown())
    text = page.read_text()
    assert text.startswith("# Recovery\n\nBy hand.\n")
    assert "old" not in text
    assert "| faults | 2 |" in text
    assert "| runs that ended as undisturbed | 1 |" in text
    assert "| hangs | 1 |" in text
    assert "| next event of the run, median and longest | 3.0 s, 4.0 s |" in text
    assert "| before run RunCreated | command | SIGKILL | same |  | 2.0 |  | 0 | 0 | 0.2 |" in text


def test_page_without_a_mark_is_not_overwritten(tmp_path: Path) -> None:
    page = tmp_path / "recovery.md"
    page.write_text("# Recovery\n")
    with pytest.raises(ValueError, match="has no line"):
        write(page, "| faults | 0 |")
    assert page.read_text() == "# Recovery\n"
