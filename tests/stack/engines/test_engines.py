"""What every engine promises, on both engines, against a plain forward pass in float32."""

import asyncio
import json
import shutil
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import torch
from safetensors.torch import load_file, save_file

from stepwell.policy.protocol import EngineError, GenerateRequest, Generation, WrongVersion

pytestmark = pytest.mark.timeout(600)  # vLLM takes 40 s to start, and several times that on a busy machine
CLOSE = 1e-3  # nats, float32 against float32 of another order of summation


def prompt(length: int, salt: int = 0) -> tuple[int, ...]:
    return tuple((7 * i * i + 13 * i + 101 * salt) % 500 + 3 for i in range(length))


def ask(token_ids: tuple[int, ...], max_tokens: int = 8, **changes) -> GenerateRequest:
    request = GenerateRequest(
        token_ids=token_ids, max_tokens=max_tokens, temperature=1.0, top_p=1.0, seed=5, stop_token_ids=(), version=1
    )
    return replace(request, **changes)


def furthest(bench, seed: int, request: GenerateRequest, generation: Generation) -> float:
    """Largest difference, in nats, between the engine's log-probabilities and the reference's."""
    whole = request.token_ids + generation.token_ids
    logprobs = bench.models.logprobs(seed, whole, request.temperature)
    first = len(request.token_ids)
    wanted = [logprobs[first + i - 1, token].item() for i, token in enumerate(generation.token_ids)]
    return max(abs(a - b) for a, b in zip(generation.logprobs, wanted, strict=True))


async def test_ids_come_out_up_to_max_tokens_with_their_version(bench):
    generation = await bench.engine.generate(ask(prompt(20), 8))
    assert len(generation.token_ids) == len(generation.logprobs) == 8
    assert all(0 <= token < 512 for token in generation.token_ids)
    assert all(-50 < logprob < 0 for logprob in generation.logprobs)
    assert (generation.finish_reason, generation.version) == ("length", 1)


async def test_generation_ends_with_the_stop_token(bench):
    free = await bench.engine.generate(ask(prompt(20), 8))
    stop = free.token_ids[3]
    stopped = await bench.engine.generate(ask(prompt(20), 8, stop_token_ids=(1, stop)))
    assert stopped.token_ids == free.token_ids[: free.token_ids.index(stop) + 1]
    assert stopped.finish_reason == "stop"


async def test_a_stop_token_as_the_last_token_allowed_is_a_stop(bench):
    free = await bench.engine.generate(ask(prompt(20), 1))
    stopped = await bench.engine.generate(ask(prompt(20), 1, stop_token_ids=free.token_ids))
    assert (stopped.token_ids, stopped.finish_reason) == (free.token_ids, "stop")


async def test_a_request_gives_the_same_tokens_alone_and_in_a_batch(bench):
    requests = [
        ask(prompt(10 + 7 * i, i), 4 + i, seed=2**63 + i, temperature=0.5 + i / 10, top_p=1.0 if i % 2 else 0.9)
        for i in range(14)
    ]
    together = await asyncio.gather(*(bench.engine.generate(request) for request in requests))
    await bench.engine.load(1, bench.models.folder(1))
    alone = [await bench.engine.generate(request) for request in requests]
    assert [g.token_ids for g in together] == [g.token_ids for g in alone]


async def test_the_seed_decides_what_is_drawn(bench):
    drawn = await asyncio.gather(*(bench.engine.generate(ask(prompt(20), 8, seed=seed)) for seed in (1, 2, 3, 1)))
    assert drawn[0].token_ids == drawn[3].token_ids
    assert len({generation.token_ids for generation in drawn}) == 3


@pytest.mark.parametrize("temperature", [1.0, 0.6, 1.7])
async def test_logprobs_are_those_of_a_plain_forward_at_the_temperature(bench, temperature):
    requests = [ask(prompt(9 + 11 * i, i), 12, seed=i, temperature=temperature) for i in range(12)]
    generations = await asyncio.gather(*(bench.engine.generate(request) for request in requests))
    pairs = zip(requests, generations, strict=True)
    assert max(furthest(bench, 1, request, generation) for request, generation in pairs) < CLOSE


async def test_top_p_keeps_to_the_nucleus(bench):
    request = ask(prompt(40), 16, top_p=0.2)
    generation = await bench.engine.generate(request)
    logprobs = bench.models.logprobs(1, request.token_ids + generation.token_ids)
    for i, token in enumerate(generation.token_ids):
        chances = logprobs[len(request.token_ids) + i - 1].exp()
        assert chances[chances > chances[token] + 1e-6].sum() < 0.2 + 1e-5


async def test_turns_that_extend_each_other_score_as_a_plain_forward_does(bench):
    async def rollout(salt: int) -> float:
        context, worst = prompt(150, salt // 4), 0.0
        for turn in range(4):
            request = ask(context, 10, seed=100 * salt + turn)
            generation = await bench.engine.generate(request)
            worst = max(worst, furthest(bench, 1, request, generation))
            context += generation.token_ids + prompt(9, salt + turn)
        return worst

    assert max(await asyncio.gather(*(rollout(salt) for salt in range(24)))) < CLOSE


async def test_score_is_the_plain_forward_at_temperature_1(bench):
    token_ids = prompt(170)
    scored = await bench.engine.score(token_ids)
    wanted = bench.models.logprobs(1, token_ids)[:-1].gather(1, torch.tensor(token_ids[1:])[:, None])[:, 0]
    assert len(scored) == len(token_ids) - 1
    assert (torch.tensor(scored) - wanted).abs().max() < CLOSE


async def test_a_loaded_version_is_what_is_served_and_no_prefix_outlives_it(bench):
    request = ask(prompt(200), 12)
    before = await bench.engine.generate(request)
    await bench.engine.load(2, bench.models.folder(2))
    after = await bench.engine.generate(replace(request, version=2))
    scored = torch.tensor(await bench.engine.score(request.token_ids))
    wanted = bench.models.logprobs(2, request.token_ids)[:-1]
    assert after.version == 2
    assert after.token_ids != before.token_ids
    assert furthest(bench, 2, request, after) < CLOSE
    assert (scored - wanted.gather(1, torch.tensor(request.token_ids[1:])[:, None])[:, 0]).abs().max() < CLOSE


async def test_another_version_than_the_loaded_one_is_refused(bench):
    with pytest.raises(WrongVersion, match=r"version 2 .* serves 1"):
        await bench.engine.generate(ask(prompt(5), version=2))


def without_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def truncated(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:5000])


def with_a_wrong_shape(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    save_file(weights | {"model.norm.weight": torch.ones(32)}, folder / "model.safetensors")


def with_a_tensor_missing(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    del weights["model.norm.weight"]
    save_file(weights, folder / "model.safetensors")


def with_a_tensor_too_many(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    save_file(weights | {"model.extra.weight": torch.ones(4)}, folder / "model.safetensors")


def of_another_model(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"rms_norm_eps": 0.5}))


def missing(folder: Path) -> None:
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    "spoil",
    [
        without_weights,
        truncated,
        with_a_wrong_shape,
        with_a_tensor_missing,
        with_a_tensor_too_many,
        of_another_model,
        missing,
    ],
)
async def test_a_folder_that_does_not_fit_leaves_the_engine_as_it_was(bench, tmp_path, spoil):
    bad = tmp_path / "bad"
    shutil.copytree(bench.models.folder(2), bad)
    spoil(bad)
    before = await bench.engine.score(prompt(30))
    with pytest.raises(EngineError):
        await bench.engine.load(2, bad)
    assert await bench.engine.score(prompt(30)) == before
    assert (await bench.engine.generate(ask(prompt(20)))).version == 1


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"token_ids": prompt(315)}, "too long"),
        ({"token_ids": ()}, "no token ids"),
        ({"token_ids": (3, 512)}, "512 is outside"),
        ({"token_ids": (3, -1)}, "-1 is outside"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"temperature": 0.0}, "temperature"),
        ({"top_p": 0.0}, "top_p"),
        ({"top_p": 1.01}, "top_p"),
        ({"seed": 2**64}, "seed"),
    ],
)
async def test_a_request_that_does_not_fit_is_a_value_error(bench, changes, complaint):
    with pytest.raises(ValueError, match=complaint):
        await bench.engine.generate(replace(ask(prompt(20)), **changes))


async def test_the_whole_context_can_be_used(bench):
    request = ask(prompt(300), 20)
    generation = await bench.engine.generate(request)
    assert len(generation.token_ids) == 20
    assert furthest(bench, 1, request, generation) < CLOSE


async def test_requests_that_were_cancelled_leave_no_trace(bench):
    cancelled = [asyncio.create_task(bench.engine.generate(ask(prompt(60, i), 200, seed=i))) for i in range(20)]
    await asyncio.sleep(0.05)
    for task in cancelled:
        task.cancel()
    await asyncio.gather(*cancelled, return_exceptions=True)
    request = ask(prompt(30), 6)
    generation = await asyncio.wait_for(bench.engine.generate(request), timeout=30)
    assert furthest(bench, 1, request, generation) < CLOSE


async def test_long_contexts_that_come_at_once_are_all_generated(bench):
    requests = [ask(prompt(300, i), 4, seed=i) for i in range(16)]
    generations = await asyncio.gather(*(bench.engine.generate(request) for request in requests))
    pairs = zip(requests, generations, strict=True)
    assert max(furthest(bench, 1, request, generation) for request, generation in pairs) < CLOSE


async def test_more_requests_than_rows_wait_their_turn(bench):
    requests = [ask(prompt(12, i), 5 + i % 7, seed=i) for i in range(60)]
    generations = await asyncio.gather(*(bench.engine.generate(request) for request in requests))
    assert [len(g.token_ids) for g in generations] == [r.max_tokens for r in requests]


async def test_weights_are_not_loaded_under_running_requests(bench):
    running = asyncio.create_task(bench.engine.generate(ask(prompt(60), 250)))
    await asyncio.sleep(0.1)
    with pytest.raises(EngineError, match="drain first"):
        await bench.engine.load(2, bench.models.folder(2))
    assert (await running).version == 1


# The last test of vLLM's server, since it ends it.
@pytest.mark.parametrize("started", ["vllm-tied"], indirect=True)
async def test_the_death_of_the_server_is_an_engine_error_and_leaves_nothing_behind(bench):
    guard = next(child for child in psutil.Process().children() if "vllm_guard.py" in " ".join(child.cmdline()))
    family = [guard, *guard.children(recursive=True)]
    private = Path(guard.cmdline()[guard.cmdline().index("--uds") + 1]).parent
    running = asyncio.create_task(bench.engine.generate(ask(prompt(60), 250)))
    await asyncio.sleep(0.2)
    guard.children()[0].kill()
    with pytest.raises(EngineError, match="server is gone"):
        await running
    with pytest.raises(EngineError):
        await bench.engine.generate(ask(prompt(20)))
    with pytest.raises(EngineError):
        await bench.engine.load(2, bench.models.folder(2))
    await bench.engine.close()
    assert not [process for process in family if process.is_running()]
    assert not private.exists()
