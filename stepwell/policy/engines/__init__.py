"""Generation engines behind `stepwell.policy.protocol.Engine`."""

from pathlib import Path

from stepwell.policy.engines.config import EngineConfig, EngineKind
from stepwell.policy.protocol import Engine

__all__ = ["EngineConfig", "EngineKind", "make_engine"]


async def make_engine(config: EngineConfig, folder: Path) -> Engine:
    """Starts an engine for the model of `folder`; it serves no version until the first `load`.

    Raises:
        EngineError: the folder holds no model that the engine can run, or the engine did not start.
    """
    # Each engine's libraries take seconds to import, so only those of the engine wanted are.
    if config.kind == "vllm":
        from stepwell.policy.engines.vllm_engine import VllmEngine

        return await VllmEngine.open(config, folder)
    from stepwell.policy.engines.transformers_engine import TransformersEngine

    return await TransformersEngine.open(config, folder)
