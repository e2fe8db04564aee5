"""Tools, retries in flight, and conversations that do not go on where the last one ended."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from stepwell.agent.chat import QWEN3, ChatRenderer
from stepwell.policy.protocol import EngineError, GenerateRequest, Generation
from tests.byte_tokenizer import TOKENIZER
from tests.stack.open_gateway import OpenGateway, open_gateway, user
from tests.stack.played_engine import PlayedEngine

TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}]
CALL = '<tool_call>\n{"name": "bash",  "arguments": {"command": "ls"}}\n</tool_call>'
"""With two spaces that no renderer writes: whoever makes tokens of it anew makes others."""
RENDERER = ChatRenderer(TOKENIZER, QWEN3)


class SlowEngine(PlayedEngine):
    """Waits to be let go; fails as often as it is told to."""

    def __init__(self, *texts: str) -> None:
        super().__init__(TOKENIZER, "<|im_end|>", *texts)
        self.go = asyncio.Event()
        self.go.set()
        self.asked = asyncio.Event()
        self.failures = 0

    async def generate(self, request: GenerateRequest) -> Generation:
        self.asked.set()
        await self.go.wait()
        if self.failures:
            self.failures -= 1
            raise EngineError("it died")
        return await super().generate(request)


@pytest.fixture
async def engine() -> SlowEngine:
    return SlowEngine()


@pytest.fixture
async def rollout(engine: SlowEngine) -> AsyncIterator[OpenGateway]:
    async with open_gateway(engine, RENDERER) as opened:
        yield opened


def answer_to(message: dict[str, Any], text: str = "a.py") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": text}


async def test_tools_are_told_and_calls_are_taken_out_of_the_text(rollout: OpenGateway, engine: SlowEngine) -> None:
    engine.texts = [f"Let me look.\n{CALL}", "Done."]
    called = await rollout.chat(user("Fix it."), tools=TOOLS)
    assert called.body["choices"][0]["finish_reason"] == "tool_calls"
    assert called.message["content"] == "Let me look."
    function = called.message["tool_calls"][0]["function"]
    assert (function["name"], json.loads(function["arguments"])) == ("bash", {"command": "ls"})
    told = RENDERER.action_text(rollout.asked[0].token_ids)
    assert "<tools>" in told
    assert '"name": "bash"' in told
    done = await rollout.chat(user("Fix it."), called.message, answer_to(called.message), tools=TOOLS)
    assert (done.message["content"], done.body["choices"][0]["finish_reason"]) == ("Done.", "stop")
    first, second = rollout.session.calls
    assert second.prompt_ids[: len(first.row_ids)] == first.row_ids, "the call stands as it was sampled"
    assert second.segment == first.segment == 0
    assert second.payload().delta_ids == RENDERER.observation_ids("a.py")
    assert (first.payload().action.tool, second.payload().action.tool) == ("bash", "message")


async def test_a_malformed_call_stays_text(rollout: OpenGateway, engine: SlowEngine) -> None:
    engine.texts = ["<tool_call>{broken</tool_call>"]
    said = await rollout.chat(user("Fix it."), tools=TOOLS)
    assert said.message["content"] == "<tool_call>{broken</tool_call>"
    assert "tool_calls" not in said.message


async def test_streamed_calls_are_those_of_the_whole_answer(rollout: OpenGateway, engine: SlowEngine) -> None:
    engine.texts = [f"So.\n{CALL}\n{CALL}"]
    whole = await rollout.chat(user("Fix it."), tools=TOOLS, return_token_ids=True)
    body = {"messages": [user("Fix it.")], "tools": TOOLS, "stream": True, "return_token_ids": True}
    headers = {"Authorization": f"Bearer {rollout.token}"}
    async with rollout.http.post(f"{rollout.url}/v1/chat/completions", json=body, headers=headers) as response:
        assert response.content_type == "text/event-stream"
        events = (await response.text()).removesuffix("\n\n").split("\n\n")
    assert events.pop() == "data: [DONE]"
    chunks = [json.loads(event.removeprefix("data: ")) for event in events]
    calls = [call for chunk in chunks for call in chunk["choices"][0]["delta"].get("tool_calls", [])]
    assert [call.pop("index") for call in calls] == [0, 1]
    assert calls == whole.message["tool_calls"]
    assert len({call["id"] for call in calls}) == 2
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert chunks[0]["prompt_token_ids"] == whole.body["prompt_token_ids"] == list(rollout.asked[0].token_ids)
    assert (
        chunks[-1]["choices"][0]["token_ids"]
        == whole.body["choices"][0]["token_ids"]
        == list(rollout.said[0].token_ids)
    )


async def test_a_harness_that_rewrites_an_answer_does_not_rewrite_its_tokens(
    rollout: OpenGateway, engine: SlowEngine
) -> None:
    engine.texts = [f"Look. \n\n{CALL}\n", "Done."]
    message = (await rollout.chat(user("Fix it."), tools=TOOLS)).message
    arguments = json.dumps({"command": "ls"}, indent=2)
    call = {
        "id": message["tool_calls"][0]["id"],
        "type": "function",
        "function": {"name": "bash", "arguments": arguments},
    }
    kept = {"role": "assistant", "content": [{"type": "text", "text": "Look."}], "tool_calls": [call]}
    await rollout.chat(user("Fix it.\n"), kept, answer_to(message), tools=TOOLS)
    first, second = rollout.session.calls
    assert second.known == len(first.row_ids)


async def test_a_turn_that_was_cut_off_is_closed_in_the_next_prompt(rollout: OpenGateway, engine: SlowEngine) -> None:
    engine.texts = ["x" * 600, "Done."]
    cut = await rollout.chat(user("Fix it."))
    assert cut.body["choices"][0]["finish_reason"] == "length"
    await rollout.chat(user("Fix it."), cut.message, user("Shorter."))
    second = rollout.session.calls[1]
    assert second.segment == 0
    assert second.payload().delta_ids[0] == RENDERER.stop_token_ids[0]


async def test_a_condensed_conversation_is_a_row_of_its_own(rollout: OpenGateway, engine: SlowEngine) -> None:
    engine.texts = [CALL, CALL, CALL, "Done."]
    messages: list[dict[str, Any]] = [user("Fix it.")]
    for text in ("one", "two"):
        said = (await rollout.chat(*messages, tools=TOOLS)).message
        messages += [said, answer_to(said, text)]
    condensed = [user("Fix it."), user("(one was seen)"), *messages[3:]]
    said = (await rollout.chat(*condensed, tools=TOOLS)).message
    await rollout.chat(*condensed, said, answer_to(said, "three"), tools=TOOLS)
    calls = rollout.session.calls
    assert [call.segment for call in calls] == [0, 0, 1, 1]
    assert [call.known for call in calls] == [0, len(calls[0].row_ids), 0, len(calls[2].row_ids)]
    sampled = calls[1].token_ids
    inside = calls[2].prompt_ids
    assert any(inside[at : at + len(sampled)] == sampled for at in range(len(inside))), "as it was sampled, not anew"
    assert [row.row_ids for row in rollout.session.rows] == [calls[1].row_ids, calls[3].row_ids]


async def test_a_second_agent_and_a_branch_are_rows_of_their_own(rollout: OpenGateway, engine: SlowEngine) -> None:
    engine.texts = ["I ask.", "Two.", "Thanks.", "Another way."]
    asks = (await rollout.chat(user("Fix it."))).message
    await rollout.chat(user("Count."))
    await rollout.chat(user("Fix it."), asks, user("Two."))
    await rollout.chat(user("Fix it."), asks, user("Three."))
    calls = rollout.session.calls
    assert [call.segment for call in calls] == [0, 1, 0, 2]
    assert calls[3].prompt_ids[: len(calls[0].row_ids)] == calls[0].row_ids
    assert calls[3].payload().delta_ids == calls[3].prompt_ids, "a new row has its whole prompt"


async def test_a_client_that_goes_away_finds_its_answer_when_it_comes_back(
    rollout: OpenGateway, engine: SlowEngine
) -> None:
    engine.texts = ["Done."]
    engine.go.clear()
    asking = asyncio.create_task(rollout.chat(user("Fix it.")))
    await engine.asked.wait()
    asking.cancel()
    await asyncio.wait([asking])
    again = asyncio.create_task(rollout.chat(user("Fix it.")))
    await asyncio.sleep(0.1)
    engine.go.set()
    assert (await again).message["content"] == "Done."
    assert len(rollout.asked) == len(rollout.stored) == 1


async def test_an_engine_that_fails_is_an_error_to_try_again_on(rollout: OpenGateway, engine: SlowEngine) -> None:
    engine.texts, engine.failures = ["Done."], 1
    failed = await rollout.chat(user("Fix it."))
    assert (failed.status, failed.code, failed.body["error"]["type"]) == (503, "unavailable", "server_error")
    assert not rollout.stored
    assert (await rollout.chat(user("Fix it."))).message["content"] == "Done."
    assert [call.index for call in rollout.session.calls] == [0]


async def test_closing_gives_up_what_is_being_generated(rollout: OpenGateway, engine: SlowEngine) -> None:
    engine.texts = ["Done."]
    engine.go.clear()
    asking = asyncio.create_task(rollout.chat(user("Fix it.")))
    await engine.asked.wait()
    await rollout.gateway.close(rollout.token)
    assert (await asking).status == 401
    assert not rollout.stored


async def test_calls_at_once_are_answered_one_after_the_other(rollout: OpenGateway, engine: SlowEngine) -> None:
    engine.texts = [str(number) for number in range(6)]
    answers = await asyncio.gather(*(rollout.chat(user(f"Agent {number}.")) for number in range(6)))
    assert sorted(answer.message["content"] for answer in answers) == engine_texts(6)
    assert [call.index for call in rollout.session.calls] == list(range(6))
    assert sorted(call.segment for call in rollout.session.calls) == list(range(6))


def engine_texts(count: int) -> list[str]:
    return [str(number) for number in range(count)]
