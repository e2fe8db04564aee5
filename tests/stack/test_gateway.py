"""The gateway before a real engine with the micro policy: what is recorded is what was sampled."""

from collections.abc import AsyncIterator

import pytest
from openai import AsyncOpenAI, AuthenticationError, BadRequestError, PermissionDeniedError
from tokenizers import Tokenizer

from stepwell.agent.chat import MICRO, ChatRenderer
from stepwell.agent.episode import EpisodeLimits
from stepwell.policy.engines import EngineConfig, make_engine
from stepwell.policy.micro.shipped import FOLDER
from stepwell.policy.protocol import Engine
from stepwell.tasks.forge import forged_task
from tests.stack.open_gateway import OpenGateway, open_gateway, user

RENDERER = ChatRenderer(Tokenizer.from_file(str(FOLDER / "tokenizer.json")), MICRO)
LIMITS = EpisodeLimits(max_turns=6, max_context_tokens=384, max_turn_tokens=24, wall_clock_s=60.0)
ISSUE = forged_task(0, "train", 0).issue


@pytest.fixture(scope="module")
async def engine() -> AsyncIterator[Engine]:
    made = await make_engine(EngineConfig(max_context=384, max_batch=4), FOLDER)
    await made.load(0, FOLDER)
    yield made
    await made.close()


@pytest.fixture
async def rollout(engine: Engine) -> AsyncIterator[OpenGateway]:
    async with open_gateway(engine, RENDERER, LIMITS) as opened:
        yield opened


def client_of(rollout: OpenGateway) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{rollout.url}/v1", api_key=rollout.token, max_retries=0)


async def play(rollout: OpenGateway, turns: int) -> list[dict[str, object]]:
    """Some turns of an episode, by plain HTTP; the messages so far."""
    messages: list[dict[str, object]] = [user(ISSUE)]
    for turn in range(turns):
        messages.append((await rollout.chat(*messages)).message)
        messages.append({"role": "tool", "content": f"L{turn + 1} x"})
    return messages


async def test_ids_and_logprobs_of_every_call_are_the_engines(rollout: OpenGateway, engine: Engine) -> None:
    await play(rollout, 3)
    calls = rollout.session.calls
    assert list(calls) == rollout.stored
    assert [call.prompt_ids for call in calls] == [request.token_ids for request in rollout.asked]
    assert [call.sampled.generation for call in calls] == rollout.said
    assert [call.sampled.generation.version for call in calls] == [0, 0, 0]
    row = calls[-1].row_ids
    scored = await engine.score(row)
    for call in calls:
        start = len(call.prompt_ids)
        assert row[start : start + len(call.token_ids)] == call.token_ids
        there = scored[start - 1 : start - 1 + len(call.token_ids)]
        assert there == pytest.approx(call.sampled.generation.logprobs, abs=1e-4), "of this very context"


async def test_the_stored_turns_make_the_row_that_was_sampled(rollout: OpenGateway) -> None:
    await play(rollout, 3)
    payloads = [call.payload() for call in rollout.session.calls]
    assert {payload.segment for payload in payloads} == {0}
    row = [token for payload in payloads for token in (*payload.delta_ids, *payload.token_ids)]
    assert tuple(row) == rollout.session.calls[-1].row_ids
    assert all(payload.logprobs == said.logprobs for payload, said in zip(payloads, rollout.said, strict=True))


async def test_a_retry_is_answered_from_the_record_and_another_seed_is_sampled(rollout: OpenGateway) -> None:
    first = await rollout.chat(user(ISSUE))
    again = await rollout.chat(user(ISSUE), temperature=0.0)
    assert again.body == first.body
    assert len(rollout.asked) == 1
    await rollout.chat(user(ISSUE), seed=1)
    assert [call.position for call in rollout.session.calls] == [0, 1]
    assert [call.segment for call in rollout.session.calls] == [0, 1], "two samples of a prompt are two rows"


async def test_the_client_does_not_choose_how_is_sampled(rollout: OpenGateway) -> None:
    await rollout.chat(user(ISSUE), temperature=0.0, max_tokens=1, top_p=0.1)
    assert (rollout.asked[0].temperature, rollout.asked[0].top_p, rollout.asked[0].max_tokens) == (1.0, 1.0, 24)
    assert rollout.stored[0].payload().asked == {"temperature": 0.0, "max_tokens": 1, "top_p": 0.1}


async def test_openais_client_streams_what_it_is_given_whole(rollout: OpenGateway) -> None:
    async with client_of(rollout) as client:
        messages = [{"role": "user", "content": ISSUE}]
        whole = await client.chat.completions.create(model="m", messages=messages, logprobs=True)
        text, reason, usage, shown = "", None, None, []
        stream = await client.chat.completions.create(
            model="m", messages=messages, logprobs=True, stream=True, stream_options={"include_usage": True}
        )
        async for chunk in stream:
            usage = chunk.usage or usage
            for choice in chunk.choices:
                text += choice.delta.content or ""
                reason = choice.finish_reason or reason
                shown += choice.logprobs.content if choice.logprobs else []
    answered = whole.choices[0]
    assert (text, reason, usage) == (answered.message.content, answered.finish_reason, whole.usage)
    call = rollout.session.calls[0]
    assert [each.logprob for each in shown] == list(call.sampled.generation.logprobs)
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens) == (len(call.prompt_ids), len(call.token_ids))
    assert len(rollout.asked) == 1, "the stream was a retry"


async def test_bounds_are_errors_that_openais_client_knows(engine: Engine) -> None:
    async def refused(limits: EpisodeLimits, turns: int, error: type[Exception], code: str, end: str) -> None:
        async with open_gateway(engine, RENDERER, limits, seconds=0.5) as rollout, client_of(rollout) as client:
            messages = await play(rollout, turns)
            with pytest.raises(error) as found:
                await client.chat.completions.create(model="m", messages=messages)
            assert found.value.code == code
            assert len(rollout.session.calls) == turns
            assert await rollout.gateway.close(rollout.token) == end

    await refused(EpisodeLimits(2, 384, 24, 60.0), 2, PermissionDeniedError, "turns_used_up", "turns")
    await refused(EpisodeLimits(6, 384, 24, 0.5), 1, PermissionDeniedError, "wall_clock_used_up", "wall_clock")
    await refused(EpisodeLimits(6, 8, 4, 60.0), 0, BadRequestError, "context_length_exceeded", "context")


async def test_a_rollout_goes_on_after_a_prompt_that_was_too_long(engine: Engine) -> None:
    async with open_gateway(engine, RENDERER, EpisodeLimits(6, 100, 24, 60.0)) as rollout:
        refused = await rollout.chat(user("f(1) is 2. " * 40))
        assert (refused.status, refused.code) == (400, "context_length_exceeded")
        assert "maximum context length is 100 tokens" in refused.body["error"]["message"]
        assert (await rollout.chat(user("f(1) is 2."))).status == 200
        assert await rollout.gateway.close(rollout.token) == "finished"


async def test_only_a_live_token_opens_the_rollout(rollout: OpenGateway) -> None:
    for path in ("/v1/chat/completions", "/v1/sandbox/exec", "/v1/sandbox/tool"):
        assert (await rollout.post({"messages": [user("x")]}, token="", path=path)).status == 401
        assert (await rollout.post({"messages": [user("x")]}, token="x" * 43, path=path)).status == 401
    async with client_of(rollout) as client:
        assert [model.id async for model in client.models.list()] == ["policy"]
        await rollout.gateway.close(rollout.token)
        with pytest.raises(AuthenticationError, match="unknown or over"):
            await client.models.list()
    assert (await rollout.chat(user("x"))).code == "invalid_api_key"
    assert not rollout.asked


async def test_what_is_no_request_is_refused_in_openais_form(rollout: OpenGateway) -> None:
    assert (await rollout.post({"messages": []})).code == "invalid_request"
    assert (await rollout.post({}, path="/v1/embeddings")).status == 404
    async with rollout.http.get(rollout.url + "/v1/chat/completions") as response:
        assert response.status == 405
        assert (await response.json())["error"]["type"] == "invalid_request_error"
