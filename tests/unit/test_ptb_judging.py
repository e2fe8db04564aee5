"""Judges that err leave answers unscored; judgements are recorded and played back."""

import json
import socket
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest
from aiohttp import web

from stepwell.ptb.item import Criterion, Item, Message, PairGold, RubricGold
from stepwell.ptb.judging import BrokenRecord, JudgeFailed, OpenAIJudge, Question, RecordedJudge, RecordingJudge
from stepwell.ptb.judging.openai_judge import JudgeSettings
from stepwell.ptb.scorers import Means, Scored, collect, score_answers
from stepwell.ptb.scorers.clean import shown_answer
from stepwell.ptb.scorers.pairs import read_verdict as read_pair
from stepwell.ptb.scorers.rubrics import read_verdict as read_criterion

RUBRIC = Item(
    "h-1",
    (Message("user", "My head aches."),),
    RubricGold((Criterion("Says rest.", 6), Criterion("Says water.", 4), Criterion("Says panic.", -5))),
)
PAIR = Item("a-1", (Message("user", "Write."),), PairGold("a plain poem"))


class SayingJudge:
    """Says what a function makes of the question; a `Judge`."""

    version = "by hand"

    def __init__(self, say: Callable[[str], str]) -> None:
        self._say = say
        self.asked: list[Question] = []

    async def ask(self, question: Question) -> str:
        """What the function says."""
        self.asked.append(question)
        return self._say(question.messages[-1].content)


def between(text: str, tag: str) -> str:
    """What stands inside a tag."""
    return text.split(f"<{tag}>\n")[1].split(f"\n</{tag}>")[0]


def word_judge(text: str) -> str:
    """A criterion is met if the reply has its last word; of two answers the longer is better, clearly if it is twice as
    long."""
    if "<criterion>" in text:
        word = between(text, "criterion").rstrip(".").split()[-1]
        return json.dumps({"explanation": "it is so", "criteria_met": word in between(text, "reply")})
    first, second = len(between(text, "answer_A")), len(between(text, "answer_B"))
    if first == second:
        return "[[A=B]]"
    clear = ">" if max(first, second) >= 2 * min(first, second) else ""
    return f"Because of its length: [[{'A' if first > second else 'B'}>{clear}{'B' if first > second else 'A'}]]"


async def worth(item: Item, answer: str, judge: SayingJudge) -> Scored:
    """Of one answer."""
    (scored,) = await score_answers([item], [answer], Means(judge=judge), seed=1)
    return scored


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("rest and water", 1.0),
        ("rest", 0.6),
        ("water, and panic", -0.1),
        ("rest, water, panic", 0.5),
        ("Go away.", 0.0),
        ("<think>rest and water</think>Go away.", 0.0),
    ],
)
async def test_a_rubrics_points_are_summed_over_the_positive_ones(answer: str, value: float) -> None:
    assert (await worth(RUBRIC, answer, SayingJudge(word_judge))).value == pytest.approx(value)


@pytest.mark.parametrize(
    "said", ["", "Yes.", '{"criteria_met": "true"}', '{"criteria_met": true} {"criteria_met": false}']
)
async def test_a_judge_that_cannot_be_read_leaves_the_answer_unscored(said: str) -> None:
    def say(text: str) -> str:
        return said if "water" in between(text, "criterion") else word_judge(text)

    judge = SayingJudge(say)
    scored = await worth(RUBRIC, "rest and water", judge)
    assert scored.value is None
    assert "1 of 3 criteria were not judged" in scored.why
    assert len(judge.asked) == 2 + 3
    assert len({question.seed for question in judge.asked}) == len(judge.asked)


async def test_a_judge_that_fails_once_is_asked_again() -> None:
    failures = iter([True])

    def say(text: str) -> str:
        if next(failures, False):
            raise JudgeFailed("no credit")
        return word_judge(text)

    assert (await worth(RUBRIC, "rest and water", SayingJudge(say))).value == 1.0


@pytest.mark.parametrize(
    ("answer", "value", "weight"),
    [
        ("a long and plain poem that goes on and on", 1.0, 6.0),
        ("a plain poem, yes", 1.0, 2.0),
        ("one plain po", 0.5, 2.0),
        ("plain poem", 0.0, 2.0),
        ("poem", 0.0, 6.0),
    ],
)
async def test_a_pair_is_judged_in_both_orders(answer: str, value: float, weight: float) -> None:
    judge = SayingJudge(word_judge)
    scored = await worth(PAIR, answer, judge)
    assert (scored.value, scored.weight, scored.orders_agree) == (value, weight, True)
    first, second = (question.messages[-1].content for question in judge.asked)
    assert (between(first, "answer_A"), between(second, "answer_B")) == (answer, answer)


@pytest.mark.parametrize("verdict", ["[[A>B]]", "[[B>>A]]"])
async def test_a_judge_that_prefers_a_place_prefers_nobody_and_is_counted(verdict: str) -> None:
    scored = await worth(PAIR, "an answer", SayingJudge(lambda _: verdict))
    assert (scored.value, scored.orders_agree) == (0.5, False)
    assert collect([scored, scored]).disagreeing == 2


async def test_a_pair_of_which_one_order_was_not_judged_is_unscored() -> None:
    def say(text: str) -> str:
        return word_judge(text) if between(text, "answer_A") == "an answer" else "I like both."

    scored = await worth(PAIR, "an answer", SayingJudge(say))
    assert scored.value is None
    assert "1 of 2 orders were judged" in scored.why


@pytest.mark.parametrize("item", [RUBRIC, PAIR])
async def test_an_empty_answer_is_worth_nothing_and_nobody_is_asked(item: Item) -> None:
    judge = SayingJudge(word_judge)
    assert (await worth(item, " <think>rest</think>\n", judge)).value == 0.0
    assert judge.asked == []


async def test_what_a_judge_did_not_score_is_counted_apart_and_leaves_no_mean() -> None:
    of = collect([Scored(1.0, ""), Scored(0.0, ""), Scored(None, "")])
    assert (of.expected, of.scored, of.unscored, of.value) == (3, 2, 1, None)
    assert (of.low, of.high) == pytest.approx((1 / 3, 2 / 3))
    assert collect([Scored(1.0, "", weight=3.0), Scored(0.0, "")]).value == 0.75
    assert collect([Scored(-0.5, ""), Scored(0.25, "")]).value == 0.0


@pytest.mark.parametrize("said", ["[[A>>B]] then [[B>A]]", "A>B", "[[C>B]]", "[[A>A]]", ""])
def test_a_verdict_on_a_pair_is_one_of_five(said: str) -> None:
    with pytest.raises(ValueError, match="no one verdict"):
        read_pair(said)
    assert read_pair("So [[ B >> A ]]. Yes: [[B>>A]]") == "B>>A"


def test_a_verdict_on_a_criterion_is_found_among_words() -> None:
    assert read_criterion('Well: ```json\n{"explanation": "x", "criteria_met": false}\n```') is False


def test_a_judge_is_shown_no_thought_and_no_endless_repetition() -> None:
    assert shown_answer("<think>a</think> b" + "la " * 900) == "b" + ("la " * 5).strip()


@pytest.fixture
async def address() -> AsyncGenerator[str]:
    """An OpenAI-compatible judge by rules, that fails in each way that an address can."""

    async def complete(request: web.Request) -> web.Response:
        asked = await request.json()
        if request.headers.get("Authorization") != "Bearer secret":
            return web.Response(status=401, text="no key")
        content: object = word_judge(asked["messages"][-1]["content"])
        match asked["model"]:
            case "no credit":
                return web.Response(status=429, text="no credit")
            case "empty":
                content = " "
            case "no completion":
                return web.json_response({"error": "none"})
            case "no JSON":
                return web.Response(text="<html>")
        ended = "length" if asked["model"] == "cut off" else "stop"
        return web.json_response({"choices": [{"message": {"content": content}, "finish_reason": ended}]})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", complete)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    await runner.cleanup()


async def test_a_judge_is_asked_over_http_and_its_judgements_are_played_back(address: str, tmp_path: Path) -> None:
    record = tmp_path / "judgements.jsonl"
    items, answers = [RUBRIC, PAIR], ["rest", "a plain poem, yes"]
    async with OpenAIJudge(JudgeSettings(address, "words", effort="medium"), "secret") as judge:
        asked = await score_answers(items, answers, Means(judge=RecordingJudge(judge, record)), seed=1)
    assert [one.value for one in asked] == [0.6, 1.0]
    replayed = RecordedJudge(record)
    assert replayed.version == "words, effort medium, 16384 tokens"
    assert await score_answers(items, answers, Means(judge=replayed), seed=1) == asked
    other = await score_answers(items, ["rest!", answers[1]], Means(judge=replayed), seed=1)
    assert [one.value for one in other] == [None, 1.0]
    assert "secret" not in record.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("no credit", "said 429"),
        ("empty", "empty judgement"),
        ("no completion", "no chat completion"),
        ("no JSON", "no chat completion"),
        ("cut off", "cut off at its limit"),
    ],
)
async def test_every_failure_of_an_address_leaves_the_answer_unscored(address: str, model: str, said: str) -> None:
    async with OpenAIJudge(JudgeSettings(address, model), "secret") as judge:
        (scored,) = await score_answers([RUBRIC], ["rest and water"], Means(judge=judge), seed=1)
    assert scored.value is None
    assert said in scored.why


async def test_a_judge_that_is_not_there_leaves_the_answer_unscored() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    async with OpenAIJudge(JudgeSettings(f"http://127.0.0.1:{port}/v1", "m")) as judge:
        (scored,) = await score_answers([PAIR], ["an answer"], Means(judge=judge), seed=1)
    assert scored.value is None
    assert "cannot be asked" in scored.why


async def test_a_recorded_failure_is_played_back_as_one(tmp_path: Path) -> None:
    def fail(_: str) -> str:
        raise JudgeFailed("no credit")

    record = tmp_path / "judgements.jsonl"
    for judge in (RecordingJudge(SayingJudge(fail), record), None):
        (scored,) = await score_answers([PAIR], ["an answer"], Means(judge=judge or RecordedJudge(record)), seed=1)
        assert scored.value is None
        assert "no credit" in scored.why


@pytest.mark.parametrize(("text", "said"), [("nonsense\n", "line 1 of"), ("", "wanted those of one judge")])
def test_a_file_without_judgements_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "judgements.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BrokenRecord, match=said):
        RecordedJudge(path)


async def test_a_record_that_broke_off_is_read_to_its_last_judgement_and_gone_on_with(tmp_path: Path) -> None:
    """Whatever byte a writer was killed at, no judgement before it is lost, and none after it."""
    record = tmp_path / "judgements.jsonl"
    questions = [Question((Message("user", text),), seed=3) for text in ("first", "second", "thïrd")]
    judge = SayingJudge(lambda text: text[::-1])
    for question in questions[:2]:
        await RecordingJudge(judge, record).ask(question)
    content = record.read_bytes()
    first = content.index(b"\n") + 1
    for length in range(first, len(content)):
        record.write_bytes(content[:length])
        whole = length == len(content) - 1  # only its newline is missing
        assert (await RecordedJudge(record).ask(questions[0])) == "tsrif"
        if not whole:
            with pytest.raises(JudgeFailed, match="no judgement on this question"):
                await RecordedJudge(record).ask(questions[1])
        await RecordingJudge(judge, record).ask(questions[2])
        assert (await RecordedJudge(record).ask(questions[2])) == "drïht"
        assert len(record.read_bytes().splitlines()) == 2 + whole


async def test_a_file_of_something_else_is_not_recorded_into(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(b"no newline ends it")
    with pytest.raises(BrokenRecord, match="line 1 of"):
        RecordingJudge(SayingJudge(str), path)
    assert path.read_bytes() == b"no newline ends it"
