"""Recorded work graded again in real sandboxes."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import pytest

from activities.regrading import Regrader
from activities.stores import Stores
from db.blobs import BlobStore
from db.ledger import Ledger
from stepwell.agent.turn import changed_files_blob
from stepwell.audit.regrading import Work
from stepwell.events import RolloutGraded, VerdictReached
from stepwell.events.streams import verdict_stream
from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.tasks.grading.verdict import grader_digest, verdict_key
from stepwell.tasks.manifest import task_blob
from stepwell.tasks.task import Task
from tests.told import DIGEST, told

TASK = Task(
    id="add",
    family="add",
    split="train",
    difficulty=1,
    issue="add subtracts",
    files={"sums.py": "def add(a, b):\n    return a - b\n"},
    hidden={"tests/test_sums.py": "from sums import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"},
    gold={"sums.py": "def add(a, b):\n    return a + b\n"},
    grader="calls",
    expected=("tests/test_sums.py::test_add",),
)
TEST = TASK.expected[0]
GOLD: Mapping[str, bytes | None] = {"sums.py": TASK.gold["sums.py"].encode()}
"""What solves it."""
NOTHING: Mapping[str, bytes | None] = {}


@pytest.fixture
def stores(ledger: Ledger, blobs: BlobStore) -> Stores:
    return Stores(ledger, blobs, actor="sandbox:test/1")


@pytest.fixture
async def sandboxes(tmp_path: Path) -> AsyncIterator[BubblewrapFactory]:
    factory = BubblewrapFactory(tmp_path)
    yield factory
    await factory.close()


async def work_of(
    stores: Stores, changed: Mapping[str, bytes | None], tree: str, *, score: float, grader: str, task: Task = TASK
) -> Work:
    """Work with a recorded verdict."""
    digest = (await stores.blobs.put(task_blob(task))).digest
    outcome = "passed" if score else "failed"
    report = json.dumps({"value": score, "outcomes": {TEST: outcome}, "report": "as recorded"}).encode()
    reached = told(
        VerdictReached,
        task=digest,
        tree=tree,
        grader=grader,
        score=score,
        report=(await stores.blobs.put(report)).digest,
    )
    key = verdict_key(digest, tree, grader)
    await stores.ledger.append(verdict_stream(key), [reached], expected_seq=0, actor=stores.actor)
    return Work(
        key=key,
        task=digest,
        tree=tree,
        changed=(await stores.blobs.put(changed_files_blob(changed))).digest,
        graded=told(RolloutGraded, verdict_key=key, score=score),
        streams=("rollout/r/3/1/0", "rollout/r/3/1/4"),
    )


async def test_a_right_verdict_is_reached_again_and_nothing_is_recorded(
    stores: Stores, sandboxes: BubblewrapFactory, fresh: Callable[[], str]
) -> None:
    work = await work_of(stores, GOLD, fresh(), score=1.0, grader=grader_digest())
    found = await Regrader(stores, sandboxes).regrade(work)
    assert (found.score, found.differs, found.is_same_grader, found.tests) == (1.0, False, True, {})
    assert len(await stores.ledger.read(verdict_stream(work.key))) == 1


async def test_a_wrong_verdict_of_the_same_grader_is_found_and_not_read_back(
    stores: Stores, sandboxes: BubblewrapFactory, fresh: Callable[[], str]
) -> None:
    work = await work_of(stores, NOTHING, fresh(), score=1.0, grader=grader_digest())
    found = await Regrader(stores, sandboxes).regrade(work)
    assert (found.score, found.differs, found.is_same_grader) == (0.0, True, True)
    assert found.tests == {TEST: ("passed", "failed")}
    assert found.words().startswith(
        f"rollout/3/1/0 and 1 more (verdict {work.key[:12]}): score 1 → 0; {TEST} passed → "
    )
    standing = [each.event for each in await stores.ledger.read(verdict_stream(work.key))]
    assert [event.score for event in standing if isinstance(event, VerdictReached)] == [1.0]


async def test_a_verdict_of_another_grader_gets_a_key_of_its_own(
    stores: Stores, sandboxes: BubblewrapFactory, fresh: Callable[[], str]
) -> None:
    work = await work_of(stores, GOLD, fresh(), score=0.0, grader=DIGEST)
    regrader = Regrader(stores, sandboxes)
    for _ in range(2):
        found = await regrader.regrade(work)
        assert (found.score, found.differs, found.is_same_grader) == (1.0, True, False)
    now = await stores.ledger.read(verdict_stream(verdict_key(work.task, work.tree, grader_digest())))
    assert [each.event.score for each in now if isinstance(each.event, VerdictReached)] == [1.0]
    assert len(await stores.ledger.read(verdict_stream(work.key))) == 1


async def test_work_that_cannot_be_graded_is_told_as_that(
    stores: Stores, sandboxes: BubblewrapFactory, fresh: Callable[[], str]
) -> None:
    broken = TASK.model_copy(update={"expected": ("tests/test_sums.py::test_nothing",)})
    work = await work_of(stores, GOLD, fresh(), score=1.0, grader=grader_digest(), task=broken)
    found = await Regrader(stores, sandboxes).regrade(work)
    assert (found.score, found.differs) == (None, False)
    assert "could not be graded: data: " in found.words()
