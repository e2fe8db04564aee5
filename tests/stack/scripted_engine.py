"""An engine that says what a test tells it to, for tests of what stands around engines."""

import asyncio
from pathlib import Path

from tokenizers import Tokenizer

from stepwell.agent.chat import MICRO
from stepwell.policy.micro.shipped import FOLDER
from stepwell.policy.protocol import EngineError, GenerateRequest, Generation, WrongVersion

TOKENIZER = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
STOP = TOKENIZER.token_to_id(MICRO.stop[0])


class ScriptedEngine:
    """An `Engine` that says what it is told to, and nothing more."""

    def __init__(self, *texts: str, version: int = 0) -> None:
        self.texts = list(texts)
        self.version = version
        self.contexts: list[tuple[int, ...]] = []
        self.silent = asyncio.Event()
        """Set when it is asked and has nothing more to say; it answers no more, as if it had been stopped."""

    async def load(self, version: int, folder: Path) -> None:
        """There is nothing to load."""
        self.version = version

    async def generate(self, request: GenerateRequest) -> Generation:
        if not self.texts:
            self.silent.set()
            await asyncio.get_running_loop().create_future()
        if request.version != self.version:
            raise WrongVersion(f"serves {self.version}")
        self.contexts.append(request.token_ids)
        ids = (*TOKENIZER.encode(self.texts.pop(0), add_special_tokens=False).ids, STOP)
        return Generation(ids, tuple(-0.5 for _ in ids), "stop", request.version)

    async def score(self, token_ids: tuple[int, ...]) -> tuple[float, ...]:
        raise EngineError("it scores nothing")

    async def check(self) -> None:
        """It is always well."""

    async def close(self) -> None:
        """It holds nothing."""
