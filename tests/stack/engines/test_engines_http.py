"""The wire, with a real engine behind a real server."""

import asyncio
import socket
from dataclasses import replace

import aiohttp
import pytest

from stepwell.policy.engine_http.client import EngineClient
from stepwell.policy.engine_http.server import listen, make_app
from stepwell.policy.engine_http.service import EngineService
from stepwell.policy.engines import EngineConfig, make_engine
from stepwell.policy.protocol import EngineError, GenerateRequest, WrongVersion

TOKEN = "f00d" * 8
REQUEST = GenerateRequest(
    token_ids=tuple(range(3, 60)),
    max_tokens=6,
    temperature=0.8,
    top_p=0.95,
    seed=2**64 - 1,
    stop_token_ids=(7,),
    version=1,
)


@pytest.fixture
async def service(tied_models):
    engine = await make_engine(EngineConfig(max_context=320, max_batch=64), tied_models.folder(1))
    service = EngineService(engine)
    await service.load(1, tied_models.folder(1))
    yield service
    await engine.close()


@pytest.fixture
async def url(service):
    listening = await listen(make_app(service, TOKEN))
    yield listening.url
    await listening.close()


@pytest.fixture
async def client(url):
    async with EngineClient(url, TOKEN) as client:
        yield client


async def wait_for_in_flight(client: EngineClient, count: int) -> None:
    for _ in range(2000):
        if (await client.health()).in_flight == count:
            return
        await asyncio.sleep(0.005)
    raise AssertionError(f"there never were {count} requests in flight")


async def test_a_generation_comes_over_the_wire_bit_for_bit(service, client):
    assert await client.generate(REQUEST) == await service.engine.generate(REQUEST)


async def test_256_requests_at_once_are_answered_each_by_its_own(client):
    requests = [replace(REQUEST, seed=i, max_tokens=1 + i % 5, stop_token_ids=()) for i in range(256)]
    generations = await asyncio.gather(*(client.generate(request) for request in requests))
    assert [len(generation.token_ids) for generation in generations] == [r.max_tokens for r in requests]


async def test_health_counts_what_was_generated(client):
    before = await client.health()
    generations = await asyncio.gather(*(client.generate(replace(REQUEST, seed=i)) for i in range(4)))
    after = await client.health()
    assert (before.version, before.in_flight, before.tokens_generated, before.draining) == (1, 0, 0, False)
    assert after.tokens_generated == sum(len(generation.token_ids) for generation in generations)
    assert after.busy_s > before.busy_s


async def test_another_version_is_a_wrong_version(client):
    with pytest.raises(WrongVersion, match="serves 1"):
        await client.generate(replace(REQUEST, version=9))


async def test_a_request_that_does_not_fit_is_a_value_error(client):
    with pytest.raises(ValueError, match="too long"):
        await client.generate(replace(REQUEST, max_tokens=400))


async def test_a_closed_gate_refuses_until_it_opens(service, client):
    service.close_gate()
    with pytest.raises(EngineError, match="no new request"):
        await client.generate(REQUEST)
    assert (await client.health()).draining
    service.open_gate()
    assert len((await client.generate(REQUEST)).token_ids) == 6


async def test_a_load_waits_for_the_requests_in_flight(service, client, tied_models):
    running = [asyncio.create_task(client.generate(replace(REQUEST, max_tokens=200))) for _ in range(4)]
    await wait_for_in_flight(client, 4)
    await service.load(2, tied_models.folder(2))
    assert [(await task).version for task in running] == [1] * 4
    assert (await client.generate(replace(REQUEST, version=2))).version == 2
    assert (await client.health()).version == 2


async def test_a_failed_load_opens_the_gate_again_at_the_old_version(service, client, tmp_path):
    with pytest.raises(EngineError):
        await service.load(2, tmp_path)
    assert (await client.generate(REQUEST)).version == 1


async def test_a_client_that_goes_away_frees_its_place(url, client):
    async with EngineClient(url, TOKEN) as leaving:
        tasks = [
            asyncio.create_task(leaving.generate(replace(REQUEST, max_tokens=250, stop_token_ids=()))) for _ in range(8)
        ]
        await wait_for_in_flight(client, 8)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    await wait_for_in_flight(client, 0)
    assert (await client.health()).tokens_generated == 0


@pytest.mark.parametrize("method", ["generate", "health"])
async def test_a_wrong_token_is_refused(url, method):
    async with EngineClient(url, "guess") as stranger:
        with pytest.raises(EngineError, match="401"):
            await (stranger.generate(REQUEST) if method == "generate" else stranger.health())


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"token_ids": [1]}', b'{"token_ids": ["1"], "max_tokens": "1"}', b"\xff"]
)
async def test_a_malformed_body_is_a_bad_request(url, body):
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(f"{url}/v1/generate", data=body) as response,
    ):
        assert response.status == 400
        assert "error" in await response.json()


async def test_nobody_listening_is_an_engine_error():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with EngineClient(f"http://127.0.0.1:{port}", TOKEN) as client:
        with pytest.raises(EngineError, match="cannot be reached"):
            await client.generate(REQUEST)


async def test_an_answer_that_takes_too_long_is_an_engine_error(url):
    async with EngineClient(url, TOKEN, timeout_s=0.05) as client:
        with pytest.raises(EngineError, match="cannot be reached"):
            await client.generate(replace(REQUEST, max_tokens=250, stop_token_ids=()))


async def test_a_closed_engine_is_an_engine_error_over_the_wire(service, client):
    await service.engine.close()
    with pytest.raises(EngineError, match="closed"):
        await client.generate(REQUEST)
