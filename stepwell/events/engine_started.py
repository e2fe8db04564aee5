"""EngineStarted."""

from typing import Literal

from stepwell.events.base import Event


class EngineStarted(Event):
    """An engine process began to serve a run. Stream `engine/<run>/<id>`."""

    type: Literal["EngineStarted"] = "EngineStarted"
    KIND = "operational"

    engine: str
    """Id, unique a process."""
    backend: str
    """Kind of engine: `transformers`, `vllm`."""
    worker: str
    """Who: host and process."""

    def key(self) -> str:
        return "started"
