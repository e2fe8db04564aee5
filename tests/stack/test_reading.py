"""The reading verbs on a real ledger: a run's events and nobody else's, as they come."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from activities.stores import NoSuchRun
from cli.live.page_file import write_page
from cli.reading import Cursor, Follower, Reader, open_reader, workflow_page
from cli.verified import verify_run
from cli.whole_file import CannotWrite
from db.blobs import blob_digest
from db.ledger import Ledger
from stepwell.agent.protocol import Action
from stepwell.agent.turn import TurnPayload
from stepwell.events import TurnRecorded
from stepwell.report.picture import RunPicture
from tests.synthetic_run import Story, learning_run


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def reader(services, database) -> AsyncIterator[Reader]:
    """A reader with the auditor's role."""
    async with open_reader(services) as opened:
        yield opened


async def record(ledger: Ledger, story: Story, told: slice = slice(None)) -> None:
    for envelope, event in story.told[told]:
        await ledger.append(envelope.stream, [event], expected_seq=envelope.seq, actor=envelope.actor)


def story_of(run: str, verdict: str = "a" * 64) -> Story:
    story = Story(run)
    story.created(0)
    story.dispatched(1, 0, prompts=1)
    stream = f"rollout/{run}/0/0/0"
    story.attempt(1, stream, "a")
    story.turn(2, stream, 0, generate_s=0.5, tool_s=0.1, tokens=10)
    story.ended(3, stream, verdict)
    story.verdict(4, verdict, 1.0, 0.25)
    story.graded(4, stream, 1.0, verdict)
    return story


async def test_a_run_is_read_with_its_verdicts_and_without_its_neighbours(
    reader: Reader, ledger: Ledger, fresh: Callable[[], str]
) -> None:
    run = fresh()
    await record(ledger, story_of(run, verdict=f"{run}".ljust(64, "a")))
    await record(ledger, story_of(f"{run}0", verdict=f"{run}0".ljust(64, "b")))
    batch = await reader.events_of(run, Cursor())
    assert sorted({each.stream for each in batch.events}) == [
        f"rollout/{run}/0/0/0",
        f"run/{run}",
        "verdict/" + run.ljust(64, "a"),
    ]
    assert len(batch.events) == 7


async def test_a_follower_sees_what_is_new_and_nothing_twice(
    reader: Reader, ledger: Ledger, fresh: Callable[[], str]
) -> None:
    run = fresh()
    story = learning_run(2)
    renamed = Story(run)
    for envelope, event in story.told:
        renamed.tell(0, envelope.stream.replace("/micro-1", f"/{run}"), event, envelope.actor)
    follower, half = Follower(reader, run), len(renamed.told) // 2
    await record(ledger, renamed, slice(None, half))
    await follower.refresh()
    seen = follower.picture.rollouts.turns
    await record(ledger, renamed, slice(half, None))
    await follower.refresh()
    await follower.refresh()
    whole = RunPicture("micro-1")
    whole.see_all(story.told)
    assert 0 < seen < whole.rollouts.turns == follower.picture.rollouts.turns
    assert follower.picture.rollouts.tokens.total == whole.rollouts.tokens.total
    assert follower.picture.training_fates == whole.training_fates
    assert follower.picture.finished == whole.finished


async def test_an_unknown_run_is_told_its_nearest_neighbours(
    reader: Reader, ledger: Ledger, fresh: Callable[[], str]
) -> None:
    run = fresh()
    await record(ledger, story_of(run), slice(1))
    await reader.require(run)
    with pytest.raises(NoSuchRun, match=f"no run '{run}x'.*'{run}'"):
        await reader.require(f"{run}x")


async def test_transcripts_are_read_from_the_recorded_turns(
    reader: Reader, ledger: Ledger, fresh: Callable[[], str], tmp_path: Path
) -> None:
    run = fresh()
    payload = TurnPayload(
        delta_ids=(1,),
        token_ids=(2, 3),
        logprobs=(-0.1, -0.2),
        finish_reason="stop",
        action=Action("edit", {"line": "4"}),
        observation="1 < 2",
        finished=False,
    ).blob()
    story = story_of(run)
    for envelope, event in story.told:
        sent, sent_blobs = event, ()
        if isinstance(event, TurnRecorded):
            sent, sent_blobs = event.model_copy(update={"payload": blob_digest(payload)}), (payload,)
        await ledger.append(envelope.stream, [sent], expected_seq=envelope.seq, actor=envelope.actor, blobs=sent_blobs)
    follower = Follower(reader, run)
    await follower.refresh()
    (transcript,) = await reader.transcripts(follower.picture)
    assert (transcript.title, transcript.score) == ("First solved", 1.0)
    assert [(turn.tool, turn.arguments, turn.observation) for turn in transcript.turns] == [
        ("edit", {"line": "4"}, "1 < 2")
    ]
    await write_page(reader, follower.picture, tmp_path / "reports" / "page.html")
    assert "1 &lt; 2" in (tmp_path / "reports" / "page.html").read_text(encoding="utf-8")
    assert [path.name for path in (tmp_path / "reports").iterdir()] == ["page.html"]


async def test_a_page_states_what_the_audit_found_and_up_to_which_head(
    services, reader: Reader, ledger: Ledger, fresh: Callable[[], str], tmp_path: Path
) -> None:
    run = fresh()
    await record(ledger, story_of(run), slice(None))
    follower = Follower(reader, run)
    await follower.refresh()
    verified = await verify_run(services, run)
    assert (verified.head_seq, verified.head_hash) == (follower.picture.head_seq, follower.picture.head_hash)
    await write_page(reader, follower.picture, tmp_path / "page.html", verified)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    failed = [result.rule for result in verified.verification.results if result.findings]
    assert f"{len(failed)} of {len(verified.verification.results)} rules FAIL ({', '.join(failed)})" in page
    assert "does not verify" in page
    assert "Not verified" not in page


async def test_a_page_that_cannot_be_written_says_where(reader: Reader, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(CannotWrite, match=r"cannot write .*page\.html.*--output"):
        await write_page(reader, RunPicture("micro-1"), tmp_path / "file" / "page.html")


def test_the_temporal_page_names_the_runs_workflow(services) -> None:
    page = workflow_page(services, "micro-1")
    assert page.startswith("http://127.0.0.1:")
    assert page.endswith("/namespaces/default/workflows/stepwell%2Fmicro-1")
