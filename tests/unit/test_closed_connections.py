"""A server that closes a connection after its first request loses no second one: servers close what was idle for
seconds, and no client can know in time."""

import asyncio
import json
from pathlib import Path

from stepwell.policy.engines.vllm_engine import session_to
from stepwell.ptb.item import Message
from stepwell.ptb.judging import OpenAIJudge, Question
from stepwell.ptb.judging.openai_judge import JudgeSettings

COMPLETION = json.dumps({"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}).encode()


async def answer_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers the first request of a connection, promises to keep it, and closes it at the second."""
    await _request(reader)
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(COMPLETION)}\r\n\r\n"
    writer.write(head.encode() + COMPLETION)
    await writer.drain()
    await reader.read(1)  # of a second request, or the client's end
    writer.close()


async def _request(reader: asyncio.StreamReader) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    await reader.readexactly(int(head.partition("content-length:")[2].split("\r\n")[0]))


async def test_vllm_is_asked_anew_each_time(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    async with await asyncio.start_unix_server(answer_once, path), session_to(path) as session:
        for _ in range(3):
            async with session.post("http://vllm/inference", json={}) as response:
                assert await response.read() == COMPLETION


async def test_a_judge_is_asked_anew_each_time() -> None:
    async with await asyncio.start_server(answer_once, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with OpenAIJudge(JudgeSettings(f"http://127.0.0.1:{port}/v1", "m")) as judge:
            for seed in range(3):
                assert await judge.ask(Question((Message("user", "well?"),), seed=seed)) == "yes"
