"""The page of a run to which everything happened that a page tells of."""

from stepwell.audit.verification import verify
from stepwell.events import OperatorActed, StallBegan, StallEnded, UsageRecorded
from stepwell.report.examples import Transcript, TranscriptTurn
from stepwell.report.page import render_page
from stepwell.report.patch import file_patches
from stepwell.report.picture import RunPicture
from stepwell.report.verified import Verified
from stepwell.tasks.grading.verdict import Score
from tests.audited_run import write_run
from tests.book import MemoryBook
from tests.run_plan import EVENTFUL
from tests.synthetic_run import RECIPE, T0, Story, learning_run
from tests.told import told


def eventful_story(hostile: str = "because", steps: int = 24) -> Story:
    """A run that learns, with stalls, failures, limits and operators; `hostile` stands wherever people or policies
    write."""
    story = learning_run(steps)
    for number, worker in enumerate((f"host/{hostile}", "b/7")):
        stream = f"rollout/{story.run}/0/9/{number}"
        story.attempt(195 + number, stream, f"{stream}-x", worker=worker)
        story.failed(199, stream, hostile)
    health = f"health/{story.run}"
    story.tell(240, health, told(StallBegan, cause=hostile))
    story.tell(252, health, told(StallEnded))
    story.tell(260, health, told(UsageRecorded, number=1, generated_tokens=60_000, hours=0.1))
    story.acted(230, "limit", limit="generated_tokens", value=90_000.0)
    operator = f"operator/{story.run}"
    story.tell(235, operator, told(OperatorActed, action="pause", arguments={"at": "now"}, reason=hostile, update="p"))
    story.acted(236, "resume")
    story.held(250, "publish/3")
    story.acted(251, "approve", gate="publish/3")
    return story


def eventful_picture(hostile: str = "because", steps: int = 24) -> RunPicture:
    """Of that story, with a bound on staleness and a limit in its recipe."""
    story, picture = eventful_story(hostile, steps), RunPicture("micro-1")
    picture.see_all(story.told)
    picture.recipe = {**RECIPE, "run": {**RECIPE["run"], "max_staleness": 1}, "limits": {"hours": 0.5}}
    return picture


def told_transcript(hostile: str = "x < 1") -> Transcript:
    """A rollout with all that a transcript may have."""
    patch = file_patches(
        {"clamp.py": "def clamp(x):\n    return x\n"},
        {"clamp.py": f"def clamp(x):\n    {hostile}\n".encode(), f"{hostile}.py": b"new\n", "a.bin": b"\xff"},
        in_image=False,
    )
    return Transcript(
        title="First solved",
        stream="rollout/micro-1/1/0/0",
        score=1.0,
        turns=(TranscriptTurn("edit", {"text": hostile}, hostile, 12, hostile),),
        task=f"forged/{hostile}",
        issue=hostile,
        version=0,
        end="finished",
        advantage=-0.5,
        patch=tuple(patch),
        verdict=Score(value=0.0, outcomes={f"test_{hostile}": "failed", "test_b": "passed"}, report=hostile),
    )


async def audited() -> Verified:
    """A real audit, of another run."""
    book = MemoryBook()
    await write_run(book, "r", EVENTFUL)
    record = book.record("r")
    head = record.run_events.child
    return Verified(verify(record), head.seq, head.head, T0, 0.5)


async def eventful_page(hostile: str = "because") -> str:
    """All of it."""
    return render_page(eventful_picture(hostile), [told_transcript(hostile)], None, await audited())
