"""How engines begin and end, and what only the transformers engine promises."""

import asyncio
import json
import shutil
import threading
from dataclasses import replace

import pytest
import torch
from pydantic import ValidationError
from safetensors.torch import load_file, save_file

from stepwell.policy.engines import EngineConfig, make_engine
from stepwell.policy.protocol import EngineError, GenerateRequest, WrongVersion

SMALL = EngineConfig(max_context=320, max_batch=4, idle_rows=2)
REQUEST = GenerateRequest(
    token_ids=tuple(range(3, 60)), max_tokens=12, temperature=0.8, top_p=0.9, seed=11, stop_token_ids=(), version=2
)


@pytest.fixture
async def engine(tied_models):
    engine = await make_engine(SMALL, tied_models.folder(1))
    yield engine
    await engine.close()


async def test_nothing_is_served_before_the_first_load(engine):
    with pytest.raises(WrongVersion, match="serves None"):
        await engine.generate(REQUEST)


@pytest.mark.parametrize("ties", ["tied_models", "untied_models"])
async def test_a_loaded_version_is_to_the_bit_that_of_a_fresh_engine(request, ties):
    models = request.getfixturevalue(ties)
    used = await make_engine(SMALL, models.folder(1))
    fresh = await make_engine(SMALL, models.folder(2))
    await used.load(1, models.folder(1))
    await used.generate(replace(REQUEST, version=1))
    await used.load(2, models.folder(2))
    await fresh.load(2, models.folder(2))
    assert await used.generate(REQUEST) == await fresh.generate(REQUEST)
    assert await used.score(REQUEST.token_ids) == await fresh.score(REQUEST.token_ids)
    await used.close()
    await fresh.close()


async def test_requests_under_way_fail_when_the_engine_closes(engine, tied_models):
    await engine.load(2, tied_models.folder(2))
    running = [asyncio.create_task(engine.generate(replace(REQUEST, max_tokens=250))) for _ in range(8)]
    await asyncio.sleep(0.02)
    await engine.close()
    results = await asyncio.gather(*running, return_exceptions=True)
    assert all(isinstance(result, EngineError) for result in results)
    with pytest.raises(EngineError, match="closed"):
        await engine.generate(REQUEST)
    assert not [thread for thread in threading.enumerate() if thread.name == "transformers-engine"]


async def test_an_engine_says_that_it_is_well_until_it_is_closed(engine, tied_models):
    await engine.load(2, tied_models.folder(2))
    running = asyncio.create_task(engine.generate(replace(REQUEST, max_tokens=200)))
    await asyncio.wait_for(engine.check(), timeout=30)
    assert not running.done(), "it answers between two steps"
    await running
    await engine.close()
    with pytest.raises(EngineError):
        await engine.check()


async def test_an_engine_whose_thread_hangs_does_not_say_that_it_is_well(engine):
    held = threading.Event()
    hanging = asyncio.create_task(engine._command(held.wait))
    await asyncio.sleep(0.05)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(engine.check(), timeout=0.5)
    held.set()
    await hanging


async def test_the_event_loop_stays_responsive_while_tokens_are_generated(engine, tied_models):
    await engine.load(2, tied_models.folder(2))
    loop = asyncio.get_running_loop()
    running = asyncio.gather(*(engine.generate(replace(REQUEST, max_tokens=200, seed=i)) for i in range(8)))
    longest, last = 0.0, loop.time()
    while not running.done():
        await asyncio.sleep(0.001)
        longest, last = max(longest, loop.time() - last), loop.time()
    await running
    assert longest < 0.5


async def test_weights_that_are_not_finite_are_an_error_and_not_a_token(engine, tied_models, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(tied_models.folder(2), broken)
    weights = load_file(broken / "model.safetensors")
    save_file(weights | {"model.norm.weight": torch.full((64,), torch.nan)}, broken / "model.safetensors")
    await engine.load(2, broken)
    with pytest.raises(EngineError, match="not finite"):
        await engine.generate(REQUEST)
    await engine.load(2, tied_models.folder(2))
    assert len((await engine.generate(REQUEST)).token_ids) == 12


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda folder: None, "does not exist"),
        (lambda folder: (folder / "config.json").write_text("{"), "cannot be read"),
        (lambda folder: (folder / "config.json").write_text(json.dumps({"model_type": "qwen3"})), "no file named"),
    ],
    ids=["empty", "no json", "no weights"],
)
async def test_a_folder_without_a_model_is_refused_at_the_start(tmp_path, spoil, complaint):
    spoil(tmp_path)
    with pytest.raises(EngineError, match=complaint):
        await make_engine(SMALL, tmp_path)


async def test_a_context_longer_than_the_models_positions_is_refused(tied_models):
    with pytest.raises(EngineError, match="512 positions"):
        await make_engine(EngineConfig(max_context=1000), tied_models.folder(1))


@pytest.mark.parametrize(
    "settings",
    [
        {"kind": "transformers", "kv_cache_mib": 64},
        {"kind": "transformers", "tensor_parallel": 2},
        {"kind": "vllm", "idle_rows": 2},
        {"kind": "other"},
        {"max_batches": 3},
        {"threads": 0},
    ],
)
def test_settings_that_would_do_nothing_or_are_wrong_are_refused(settings):
    with pytest.raises(ValidationError):
        EngineConfig.model_validate(settings)
