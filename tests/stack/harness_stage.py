"""A stage on which the scripted harness plays a rollout through the gateway, with an engine that says given texts."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil
import pytest

from activities.harness_rollout import HarnessHost
from stepwell.agent.gateway.server import Gateway
from stepwell.policy.engine_http.server import listen
from stepwell.policy.protocol import GenerateRequest, Generation
from stepwell.recipe.loading import load_recipe
from stepwell.recipe.recipe import Recipe
from tests.byte_tokenizer import TOKENIZER
from tests.stack.played_engine import PlayedEngine
from tests.stack.rollout_stage import Backstage, Stage, small_task
from workers.harness import run_harness

RECIPE = Path(__file__).parents[2] / "recipes" / "smollm2.toml"
HARNESS = Path(__file__).with_name("scripted_harness.py")


class SilentEngine(PlayedEngine):
    """Says its texts and then nothing more."""

    def __init__(self) -> None:
        super().__init__(TOKENIZER, "<|im_end|>")
        self.silent = asyncio.Event()

    async def generate(self, request: GenerateRequest) -> Generation:
        if not self.texts:
            self.silent.set()
            await asyncio.get_running_loop().create_future()
        return await super().generate(request)


@dataclass
class HarnessStage(Stage[SilentEngine]):
    """A stage on which the scripted harness plays."""

    homes: Path

    async def attempt(self, *texts: str) -> None:
        """One attempt; nothing of its harness is left, however it ends."""
        try:
            await super().attempt(*texts)
        finally:
            assert not list(self.homes.iterdir()), "no harness's folder is left"
            assert not [each for each in psutil.Process().children(recursive=True) if str(HARNESS) in each.cmdline()]


class OpenHarnessStage(Protocol):
    """Opens such a stage."""

    def __call__(self, *arguments: str, **agent: object) -> AbstractAsyncContextManager[HarnessStage]:
        """From the harness's arguments, and keys of the recipe's `agent`."""
        ...


@pytest.fixture
def harness_stage(backstage: Backstage, tmp_path: Path) -> OpenHarnessStage:
    """Opens stages of the scripted harness."""

    @asynccontextmanager
    async def opened(*arguments: str, **agent: object) -> AsyncIterator[HarnessStage]:
        raw = load_recipe(RECIPE).model_dump(mode="json")
        harness = [sys.executable, str(HARNESS), *arguments]
        own: dict[str, object] = {"harness": harness, "stop_when_stuck": False, "functions": None, "prompt": None}
        raw["agent"] |= own | {"max_turns": 8} | agent
        raw["policy"]["warm_up"] = None
        policy, homes, gateway = tmp_path / "policy", tmp_path / "homes", Gateway()
        policy.mkdir(exist_ok=True)
        TOKENIZER.save(str(policy / "tokenizer.json"))
        listening = await listen(gateway.app())
        host = HarnessHost(gateway, listening.url, homes, run_harness)
        try:
            async with backstage.open(Recipe.model_validate(raw), policy, small_task(), SilentEngine(), host) as on:
                yield HarnessStage(**vars(on), homes=homes)
        finally:
            await listening.close()

    return opened
