"""Generation engines behind `stepwell.policy.protocol.Engine`."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from stepwell.policy.engines.config import EngineConfig, EngineKind
from stepwell.policy.protocol import Engine

if TYPE_CHECKING:
    from stepwell.policy.engines.transformers_engine import TransformersEngine
    from stepwell.policy.engines.vllm_engine import VllmEngine

__all__ = ["EngineConfig", "EngineKind", "make_engine"]


async def make_engine(config: EngineConfig, folder: Path) -> Engine:
    """Starts an engine for the model of `folder`; it serves no version until the first `load`.

    Raises:
        EngineError: the folder holds no model that the engine can run, or the engine did not start.
    """
    # Each engine's libraries take seconds to import: only those of the engine wanted are, beside the event loop.
    if config.kind == "vllm":
        return await (await asyncio.to_thread(_vllm)).open(config, folder)
    return await (await asyncio.to_thread(_transformers)).open(config, folder)


def _vllm() -> "type[VllmEngine]":
    from stepwell.policy.engines.vllm_engine import VllmEngine

    return VllmEngine


def _transformers() -> "type[TransformersEngine]":
    from stepwell.policy.engines.transformers_engine import TransformersEngine

    return TransformersEngine
