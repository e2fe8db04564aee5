"""What an engine is: token ids in, token ids and log-probabilities out."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol


@dataclass(frozen=True)
class GenerateRequest:
    """One continuation to sample."""

    token_ids: tuple[int, ...]
    """The whole context so far."""
    max_tokens: int
    """Most tokens to generate, at least 1; context and generation together fit the model's context."""
    temperature: float
    """Above 0. Log-probabilities are those of the distribution after the temperature, before top_p."""
    top_p: float
    """In (0, 1]."""
    seed: int
    """Seed of this turn (64 bits, unsigned): the same request gives the same tokens on the same engine build,
    whatever else is in the batch, up to floating point."""
    stop_token_ids: tuple[int, ...]
    """Generation ends after one of these; it is part of the result."""
    version: int
    """Weight version that must generate it all."""


@dataclass(frozen=True)
class Generation:
    """What an engine sampled."""

    token_ids: tuple[int, ...]
    """Generated ids, with the stop token if it ended by one."""
    logprobs: tuple[float, ...]
    """One a token, in nats, under temperature-scaled logits (no top_p); finite."""
    finish_reason: Literal["stop", "length"]
    version: int
    """Weight version of every token."""


class WrongVersion(Exception):
    """The engine serves another weight version than the one asked for, or none yet."""


class EngineError(Exception):
    """The engine failed: infrastructure, never a score."""


class Engine(Protocol):
    """A generation engine in this process. All methods are safe to call from one event loop."""

    async def load(self, version: int, folder: Path) -> None:
        """Loads a Hugging Face folder (`config.json`, `model.safetensors`) as `version`, and drops the prefix cache.

        Called only while nothing is being generated. A folder that does not fit leaves the engine as it was.

        Raises:
            EngineError: what was wrong with the folder, or that the engine died.
        """
        ...

    async def generate(self, request: GenerateRequest) -> Generation:
        """Samples one continuation; concurrent calls are batched.

        Raises:
            WrongVersion: another version is loaded.
            EngineError: the engine died.
            ValueError: the request does not fit the model.
        """
        ...

    async def score(self, token_ids: tuple[int, ...]) -> tuple[float, ...]:
        """Log-probability of each token but the first given those before it, at temperature 1, in nats: the probe by
        which an engine attests what it serves. Length `len(token_ids) - 1`."""
        ...

    async def check(self) -> None:
        """Returns when the engine says that it goes on; one that hangs says nothing.

        Raises:
            EngineError: it is dead and stays so: start it anew.
        """
        ...

    async def close(self) -> None:
        """Frees what the engine holds; generations under way raise EngineError."""
        ...
