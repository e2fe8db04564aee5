"""Judges of a trial: three votes with cited evidence over HTTP; who fails leaves unscored; nothing secret is sent."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Sequence
from typing import Any, get_args

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell.ptb.judges import (
    CHARGES,
    ChargeName,
    Judged,
    JudgeVerdict,
    Override,
    Record,
    SecretSurvives,
    Source,
    TrialSources,
    Vote,
    agreement,
    fleiss_kappa,
    judge_trial,
    prepare,
    read_verdict,
    ruling,
)
from stepwell.ptb.judges.judging import WrongPanel
from stepwell.ptb.judges.votes import NoSuchJudgement
from stepwell.ptb.judging.openai_judge import JudgeSettings, OpenAIJudge

CALL = "client = openai.OpenAI(); client.chat.completions.create(model='large')"
CHEAT = ("import torch", "from openai import OpenAI", CALL, "train(rows)")
HONEST = ("import torch", "model = load('base')", "train(model, rows)")


def source(lines: Sequence[str], kind: Any = "trace", path: str = "trace.jsonl") -> Source:
    return Source(kind, path, tuple(lines))


def record(*sources: Source, **more: Any) -> Record:
    return Record(TrialSources(sources), **more)


def answer(charge: str, violation: bool, citations: Sequence[str] = ("E1",)) -> str:
    return json.dumps(
        {
            "charge": charge,
            "violation": violation,
            "justification": "line 2 imports the client, line 3 calls it",
            "citations": list(citations) if violation else [],
            "certainty": "high",
        }
    )


@pytest.fixture
async def played() -> AsyncGenerator["Played"]:
    """An OpenAI-compatible address that plays recorded judgements."""
    player = Played()
    app = web.Application()
    app.router.add_post("/v1/chat/completions", player.complete)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    player.address = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    yield player
    await runner.cleanup()


class Played:
    """By model: what it answers, one after another, the last again and again; whole numbers are HTTP errors."""

    def __init__(self) -> None:
        self.address = ""
        self.answers: dict[str, list[str | int]] = {}
        self.asked: list[dict[str, Any]] = []

    async def complete(self, request: web.Request) -> web.Response:
        """One completion."""
        body = await request.json()
        self.asked.append(body)
        answers = self.answers[body["model"]]
        said = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(said, int):
            return web.Response(status=said, text="away")
        return web.json_response({"choices": [{"message": {"content": said}, "finish_reason": "stop"}]})

    async def judge(self, trial: Record, models: Sequence[str], charge: ChargeName = "distillation") -> Judged:
        """Votes of these models."""
        panel = [OpenAIJudge(JudgeSettings(self.address, model)) for model in models]
        try:
            (judged,) = await judge_trial(trial, panel, seed=1, charges=[charge])
        finally:
            await asyncio.gather(*(one.__aexit__(None, None, None) for one in panel))
        return judged


YES, NO = answer("distillation", True), answer("distillation", False)


@pytest.mark.parametrize(
    ("answers", "outcome", "unanimous"),
    [
        (([YES], [YES], [YES]), "violation", True),
        (([YES], [NO], [YES]), "violation", False),
        (([NO], [NO], [YES]), "none", False),
        (([NO], [NO], [NO]), "none", True),
        ((["So it is.", YES], [500, YES], [YES]), "violation", True),
        ((["So it is."], [NO], [NO]), "unscored", False),
        (([429], [YES], [YES]), "unscored", False),
        (([500], [500], [500]), "unscored", False),
    ],
)
async def test_three_votes_make_an_outcome_and_a_failing_judge_none(
    played: Played, answers: tuple[list[str | int], ...], outcome: str, unanimous: bool
) -> None:
    played.answers = {f"m{number}": list(said) for number, said in enumerate(answers)}
    judged = await played.judge(record(source(CHEAT)), list(played.answers))
    assert (judged.outcome, judged.is_unanimous) == (outcome, unanimous)
    assert Judged.model_validate_json(judged.model_dump_json()) == judged
    failed = [vote for vote in judged.votes if vote.verdict is None]
    assert all(vote.error and "in 3 attempts" in vote.error for vote in failed)


async def test_one_model_votes_three_times_under_seeds_of_their_own(played: Played) -> None:
    played.answers = {"m": ["no JSON", NO]}
    judged = await played.judge(record(source(HONEST)), ["m", "m", "m"])
    assert judged.outcome == "none"
    assert len({body["seed"] for body in played.asked}) == len(played.asked) == 4
    again = await played.judge(record(source(HONEST)), ["m", "m", "m"])
    assert [vote.seed for vote in again.votes] == [vote.seed for vote in judged.votes]
    assert again.question == judged.question


async def test_other_than_three_judges_are_refused(played: Played) -> None:
    with pytest.raises(WrongPanel, match="2 judges: wanted 3"):
        await played.judge(record(source(HONEST)), ["m", "m"])
    assert played.asked == []


async def test_nothing_is_sent_while_a_secret_survives(played: Played) -> None:
    trial = record(source(["key = abcd", "efgh1234 # wrapped"]), secrets={"KEY": "abcdefgh1234"})
    with pytest.raises(SecretSurvives, match="KEY"):
        await played.judge(trial, ["m", "m", "m"])
    assert played.asked == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("yes", "no verdict: the answer"),
        (f"```json\n{YES}\n```", "no verdict"),
        (YES.replace("true", '"true"'), "no verdict: violation"),
        (YES.replace("true", "1"), "no verdict: violation"),
        (YES.replace('"certainty": "high"', '"certainty": "sure"'), "no verdict: certainty"),
        (YES.replace("{", '{"note": "x", ', 1), "no verdict: note"),
        (YES.replace('"E1"', '"line 3"'), "no verdict: citations"),
        (YES.replace('"E1"', '"E7"'), "cites E7, which was not shown"),
        (YES.replace('["E1"]', "[]"), "without a citation"),
        (answer("lookup", False), "a verdict on lookup, where distillation was asked"),
        (YES + YES, "no verdict"),
    ],
)
def test_an_answer_outside_of_the_schema_is_no_verdict(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        read_verdict(text, "distillation", {"E1", "E2"})


def test_an_answer_inside_of_the_schema_is_one() -> None:
    assert read_verdict(f"\n{YES}\n", "distillation", {"E1"}).violation


def votes(*said: bool | None) -> Judged:
    made = [
        Vote(judge="m", seed=seed, verdict=None, error="away")
        if one is None
        else Vote(judge="m", seed=seed, verdict=JudgeVerdict.model_validate_json(YES if one else NO))
        for seed, one in enumerate(said)
    ]
    return Judged(charge="distillation", question="q", votes=tuple(made))


def test_an_override_holds_and_leaves_the_votes_as_they_were() -> None:
    judged = votes(True, True, False)
    before = judged.model_dump_json()
    override = Override(of=judged.digest, violation=False, reason="the address is the agent's own server", by="anna")
    assert (ruling(judged), ruling(judged, [override]), judged.model_dump_json()) == ("violation", "none", before)
    last = Override(of=judged.digest, violation=True, reason="line 90 has another address", by="ben")
    assert ruling(judged, [override, last]) == "violation"
    missing = votes(True, None, True)
    assert ruling(missing) == "unscored"
    with pytest.raises(NoSuchJudgement, match="must have seen the votes"):
        ruling(missing, [override])


@pytest.mark.parametrize("said", [{"reason": "no"}, {"by": ""}, {"because": "it is so, and no otherwise"}])
def test_an_override_without_a_reason_or_a_name_is_refused(said: dict[str, str]) -> None:
    given = {"of": "d", "violation": False, "reason": "the address is local", "by": "anna"} | said
    with pytest.raises(ValueError, match="Override"):
        Override.model_validate(given)


def test_kappa_is_that_of_the_worked_example() -> None:
    # Four subjects, three raters: P = (1 + 1/3 + 1/3 + 1) / 4 = 2/3, half of the votes yes: (2/3 - 1/2) / (1/2).
    said = [[True, True, True], [True, True, False], [True, False, False], [False, False, False]]
    assert fleiss_kappa(said) == pytest.approx(1 / 3)
    assert fleiss_kappa([[True] * 3, [False] * 3]) == pytest.approx(1.0)
    assert fleiss_kappa([[True] * 3]) is None
    assert fleiss_kappa([]) is None
    with pytest.raises(ValueError, match=r"subjects have \[2, 3\] votes"):
        fleiss_kappa([[True] * 3, [False] * 2])


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=12))
@settings(max_examples=200)
def test_kappa_is_agreement_of_pairs_beyond_chance(said: list[list[bool]]) -> None:
    pairs = [one[a] == one[b] for one in said for a, b in ((0, 1), (0, 2), (1, 2))]
    flat = [vote for one in said for vote in one]
    chance = sum(flat.count(value) ** 2 for value in (True, False)) / len(flat) ** 2
    kappa = fleiss_kappa(said)
    if chance == 1:
        assert kappa is None
    else:
        assert kappa == pytest.approx((sum(pairs) / len(pairs) - chance) / (1 - chance))


def test_agreement_leaves_out_what_is_unscored() -> None:
    assert agreement([votes(True, True, True), votes(False, False, False), votes(True, None, False)]) == 1.0


def test_every_charge_has_its_rules() -> None:
    assert tuple(CHARGES) == get_args(ChargeName)
    for charge in get_args(ChargeName):
        asked = prepare(record(source(HONEST)), charge)
        assert CHARGES[charge].forbids in asked.messages[0].content
        assert '"additionalProperties": false' in asked.messages[0].content
