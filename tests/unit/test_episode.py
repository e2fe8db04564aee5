"""The episode loop: token in, token out; each turn recorded before the next; replay goes on where it stopped."""

import pytest

from stepwell.agent.compact import CompactTools
from stepwell.agent.episode import Divergence, Episode, EpisodeLimits, PromptTooLong, Sampled, Turn
from stepwell.agent.protocol import StopReason
from stepwell.agent.turn import RecordedTurn, TurnPayload, changed_files_blob, parse_changed_files
from stepwell.policy.micro.trusted_sandbox import TrustedSandbox
from stepwell.policy.protocol import Generation
from stepwell.tasks.forge import forged_task
from stepwell.tasks.task import Task

STOP = 0
ROOMY = EpisodeLimits(max_turns=8, max_context_tokens=4096, max_turn_tokens=64, wall_clock_s=60.0)


class Letters:
    """A renderer whose tokens are code points; 0 ends a turn."""

    stop_token_ids = (STOP,)

    def prompt_ids(self, system: str, issue: str) -> tuple[int, ...]:
        return tuple(map(ord, f"{system}?{issue}>"))

    def observation_ids(self, text: str) -> tuple[int, ...]:
        return tuple(map(ord, f"<{text}>"))

    def action_text(self, token_ids: tuple[int, ...]) -> str:
        return "".join(map(chr, token_ids)).removesuffix("\0")


class Script:
    """Samples given texts, and remembers the contexts that it was asked with."""

    def __init__(self, *texts: str, cut: bool = False) -> None:
        self.texts = list(texts)
        self.contexts: list[tuple[int, ...]] = []
        self.rooms: list[int] = []
        self._cut = cut

    async def __call__(self, context: tuple[int, ...], room: int, turn: int) -> Sampled:
        self.contexts.append(context)
        self.rooms.append(room)
        ids = tuple(map(ord, self.texts[turn])) + (() if self._cut else (STOP,))
        reason = "length" if self._cut else "stop"
        return Sampled(Generation(ids, tuple(-0.5 for _ in ids), reason, 7), "e", 0.25)


class Book:
    """Keeps what was recorded."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.ends: list[StopReason | None] = []

    async def __call__(self, turn: Turn, end: StopReason | None) -> None:
        self.turns.append(turn)
        self.ends.append(end)


@pytest.fixture
def task() -> Task:
    return forged_task(0, "train", 0)


def episode(task: Task, limits: EpisodeLimits = ROOMY) -> Episode:
    return Episode(task, CompactTools(), Letters(), limits)


async def test_context_is_every_recorded_token_in_order(task: Task) -> None:
    script, book = Script("view", "done"), Book()
    end = await episode(task).play(TrustedSandbox(task), script, book)
    assert end is StopReason.FINISHED
    assert book.ends == [None, StopReason.FINISHED]
    first, second = (turn.recorded.payload for turn in book.turns)
    assert script.contexts[0] == first.delta_ids == Letters().prompt_ids("", task.issue)
    assert script.contexts[1] == (*first.delta_ids, *first.token_ids, *second.delta_ids)
    assert second.delta_ids == Letters().observation_ids(first.observation)
    assert [turn.prompt_tokens for turn in book.turns] == [len(context) for context in script.contexts]


async def test_a_turn_is_recorded_before_the_next_is_sampled(task: Task) -> None:
    book = Book()

    async def sample(context: tuple[int, ...], room: int, turn: int) -> Sampled:
        assert len(book.turns) == turn
        return await Script("view", "view", "done")(context, room, turn)

    await episode(task).play(TrustedSandbox(task), sample, book)
    assert len(book.turns) == 3


async def test_replay_goes_on_after_the_last_recorded_turn(task: Task) -> None:
    whole, whole_book = Script("view", "test", "done"), Book()
    await episode(task).play(TrustedSandbox(task), whole, whole_book)
    recorded = [turn.recorded for turn in whole_book.turns[:2]]

    rest, rest_book, again, sandbox = Script("view", "test", "done"), Book(), episode(task), TrustedSandbox(task)
    await again.replay(recorded, sandbox)
    await again.play(sandbox, rest, rest_book)
    assert rest.contexts == whole.contexts[2:], "no recorded turn is sampled again, and the context is the same"
    assert [turn.index for turn in rest_book.turns] == [2]
    assert rest_book.turns[0].recorded.tree == whole_book.turns[2].recorded.tree


async def test_replay_notices_a_tree_that_differs(task: Task) -> None:
    book = Book()
    await episode(task).play(TrustedSandbox(task), Script("view", "done"), book)
    true = book.turns[0].recorded
    with pytest.raises(Divergence) as found:
        await episode(task).replay([RecordedTurn(true.payload, "0" * 64, true.seconds)], TrustedSandbox(task))
    assert found.value.turn == 0
    assert found.value.found == true.tree


@pytest.mark.parametrize(
    ("limits", "reason", "turns"),
    [
        (EpisodeLimits(2, 4096, 64, 60.0), StopReason.TURNS, 2),
        (EpisodeLimits(8, 4096, 64, 0.3), StopReason.WALL_CLOCK, 2),
    ],
    ids=["turns", "wall clock"],
)
async def test_limits_end_the_episode(task: Task, limits: EpisodeLimits, reason: StopReason, turns: int) -> None:
    book = Book()
    assert await episode(task, limits).play(TrustedSandbox(task), Script(*["view"] * 8), book) is reason
    assert len(book.turns) == turns
    assert book.ends[-1] is reason


@pytest.mark.parametrize(("stop", "turns"), [(True, 4), (False, 6)])
async def test_an_agent_that_repeats_itself_has_ended(task: Task, stop: bool, turns: int) -> None:
    limits, book = EpisodeLimits(6, 4096, 64, 60.0, stop_when_stuck=stop), Book()
    end = await episode(task, limits).play(TrustedSandbox(task), Script(*["view"] * 6), book)
    assert end is (StopReason.STUCK if stop else StopReason.TURNS)
    assert len(book.turns) == turns
    again = episode(task, limits)
    await again.replay([turn.recorded for turn in book.turns], TrustedSandbox(task))
    assert again.ended() is end, "the recorded turns alone say so"


async def test_a_next_turn_that_would_not_fit_ends_the_episode(task: Task) -> None:
    room = len(Letters().prompt_ids("", task.issue)) + len("view") + 2
    book = Book()
    assert await episode(task, EpisodeLimits(8, room, 64, 60.0)).play(TrustedSandbox(task), Script("view"), book) is (
        StopReason.CONTEXT
    )
    assert book.ends == [StopReason.CONTEXT]


async def test_a_turn_has_no_more_room_than_the_context_leaves(task: Task) -> None:
    prompt = len(Letters().prompt_ids("", task.issue))
    script = Script("view", cut=True)
    await episode(task, EpisodeLimits(1, prompt + 5, 64, 60.0)).play(TrustedSandbox(task), script, Book())
    assert script.rooms == [5]


async def test_a_turn_that_was_cut_off_is_closed_before_the_answer(task: Task) -> None:
    book = Book()
    await episode(task, EpisodeLimits(2, 4096, 4, 60.0)).play(
        TrustedSandbox(task), Script("view", "view", cut=True), book
    )
    assert book.turns[1].recorded.payload.delta_ids[0] == STOP


async def test_a_prompt_that_does_not_fit_is_broken_data(task: Task) -> None:
    with pytest.raises(PromptTooLong, match=r"raise agent\.max_context_tokens"):
        await episode(task, EpisodeLimits(8, 16, 4, 60.0)).play(TrustedSandbox(task), Script("view"), Book())


def test_stored_forms_round_trip() -> None:
    changed = {"a.py": b"\x00\xff", "gone.py": None}
    assert parse_changed_files(changed_files_blob(changed)) == changed
    payload = TurnPayload(
        delta_ids=(1, 2),
        token_ids=(3,),
        logprobs=(-0.1234567890123,),
        finish_reason="stop",
        action=CompactTools().parse("view"),
        observation="é",
        finished=False,
    )
    assert TurnPayload.model_validate_json(payload.blob()) == payload
