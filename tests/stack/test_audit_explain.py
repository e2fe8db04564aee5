"""`stepwell audit explain | counterfactual | quarantine` on a real ledger."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.main import main
from db.blobs import BlobStore
from db.database import Database
from db.errors import DatabaseRefused, NotOwner
from db.ledger import Ledger
from stepwell.events import RolloutTainted
from stepwell.events.streams import quarantine_stream
from tests.audited_group import TEST
from tests.audited_run import write_run
from tests.book import LedgerBook
from tests.run_plan import Plan
from tests.stack.database import DatabaseUrls
from tests.told import told


@pytest.fixture
async def book(ledger: Ledger, blobs: BlobStore, fresh: Callable[[], str]) -> LedgerBook:
    """A finished run."""
    written = LedgerBook(ledger, blobs.put)
    await write_run(written, fresh(), Plan())
    return written


@pytest.fixture
def command(services_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable:
    """`stepwell audit …` on the session's services: its exit code, and what it printed."""
    monkeypatch.setenv("STEPWELL_HOME", str(services_home))

    def call(*words: str) -> tuple[int, str]:
        capsys.readouterr()
        code = main(["audit", *words])
        said = capsys.readouterr()
        return code, said.out + said.err

    return call


def test_a_score_is_explained_as_a_tree_and_as_a_graph(book: LedgerBook, command: Callable) -> None:
    code, said = command("explain", book.run)
    assert code == 0
    assert said.splitlines()[0] == "validation/2/main  pass@3 1.000, pass@1 0.333, pass^3 0.000, 2 of 2 tasks solved"
    for wanted in (
        "came from",
        "version/2  weights x2",
        "batch/1  6 rollouts",
        f"test/{book.run}-1-0-0/{TEST}  passed",
    ):
        assert wanted in said
    code, said = command("explain", book.run, "pass@k", "--json")
    graph = json.loads(said)
    assert (code, graph["root"]) == (0, "validation/2/main")
    for node in graph["nodes"]:
        for mark in node["events"]:
            assert book.hashes[mark["stream"]][mark["seq"]] == mark["hash"]
    refs = {node["ref"] for node in graph["nodes"]}
    assert {"version/0", "rollout/0/1/2/turn/0", "engine/e1/load/0", "run"} <= refs
    assert all({edge["cause"], edge["effect"]} <= refs for edge in graph["edges"])


def test_a_blob_leads_to_what_it_belongs_to(book: LedgerBook, command: Callable) -> None:
    manifest = next(event.manifest for event in book.events[f"run/{book.run}"] if event.type == "StepAdmitted")
    code, said = command("explain", book.run, f"blob/{manifest[:12]}", "--depth", "1")
    assert (code, said.splitlines()[0].split()[0]) == (0, "batch/0")


def test_what_is_not_there_exits_2_with_what_is(book: LedgerBook, command: Callable) -> None:
    code, said = command("explain", book.run, "version/7")
    assert (code, "it has the versions 0 to 2" in said) == (2, True)
    code, said = command("explain", f"{book.run}x")
    assert (code, "did you mean" in said) == (2, True)


def test_a_counterfactual_tells_each_step_and_leaves_the_ledger_alone(book: LedgerBook, command: Callable) -> None:
    code, said = command("counterfactual", book.run, "--set", "rl.estimator=dr_grpo")
    assert code == 0
    assert said.splitlines()[0] == "rl.baseline: leave_one_out in the run, here group_mean"
    assert "no advantage changes sign" in said
    code, said = command("counterfactual", book.run, "--set", "rl.estimator=dr_grpo", "--json")
    steps = json.loads(said)["steps"]
    assert [(step["step"], step["rollouts"], step["changed"]) for step in steps] == [(0, 6, 5), (1, 6, 5)]
    assert command("counterfactual", book.run, "--set", "rl.clip_low=0.1")[0] == 2


async def test_a_quarantine_is_recorded_once_told_everywhere_and_taken_back(
    book: LedgerBook, command: Callable, ledger: Ledger
) -> None:
    async def call(*words: str) -> tuple[int, str]:
        return await asyncio.to_thread(command, *words)

    marked = ("quarantine", book.run, "--rollout", "1/0/0", "--rollout", "v0-main/0/1", "--reason", "it saw the tests")
    code, said = await call(*marked)
    assert (code, said.splitlines()[0]) == (0, "2 recorded")
    assert said.endswith("so version 2 is; the last clean version is 1\n")
    assert (await call(*marked))[1].startswith("nothing to record: it stands so already")
    acts = [each.event for each in await ledger.read(quarantine_stream(book.run))]
    assert [(event.rollout, event.reason) for event in acts if isinstance(event, RolloutTainted)] == [
        (f"rollout/{book.run}/1/0/0", "it saw the tests"),
        (f"rollout/{book.run}/v0-main/0/1", "it saw the tests"),
    ]
    code, said = await call("verify", book.run)
    assert (code, "so version 2 is; the last clean version is 1" in said) == (0, True)
    assert "tainted: trained on a tainted rollout" in (await call("explain", book.run, "version/2"))[1]
    cleared = await call(*marked, "--clear", "--json")
    assert json.loads(cleared[1]) == {
        "run": book.run,
        "appended": 2,
        "marks": [],
        "tainted_versions": [],
        "last_clean_version": 2,
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--rollout", "1/0/7", "--reason", "x"), "group 1/0 has 3 samples"),
        (("--rollout", "1/0/0"), "--reason is needed"),
        (("--rollout", "1/0/0/turn/0", "--reason", "x"), "a whole rollout is marked, as 1/0/0"),
        (("--reason", "x"), "do nothing without --rollout"),
    ],
)
def test_a_mark_that_cannot_be_is_refused(book: LedgerBook, command: Callable, words: tuple, said: str) -> None:
    code, found = command("quarantine", book.run, *words)
    assert (code, said in found) == (2, True), found


async def test_only_an_operator_declares_a_quarantine_and_no_auditor_writes(
    database: DatabaseUrls, ledger: Ledger, fresh: Callable[[], str]
) -> None:
    stream = quarantine_stream(fresh())
    event = told(RolloutTainted, rollout="rollout/r/0/0/0")
    with pytest.raises(NotOwner):
        await ledger.append(stream, [event], expected_seq=0, actor="control:test/1")
    reading = Database(database.auditor)
    try:
        with pytest.raises(DatabaseRefused):
            await Ledger(reading).append(stream, [event], expected_seq=0, actor="operator:ann@host")
    finally:
        await reading.close()
