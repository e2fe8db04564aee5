"""Answers by transformers, one batch at a time and the same bits each time.

A batch is put to the continuous batcher whole and in order before its first step, with an empty cache: which requests
compute together, and so each bit, follows from the batch alone. So a batch that was answered before a crash need not be
answered again, and one that was not gives what it would have given.
"""

import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tokenizers
import torch
import transformers

from stepwell.policy.engines.batcher import ContinuousBatcher
from stepwell.policy.engines.batcher import Sequence as Running
from stepwell.policy.engines.live_model import cache_shape, open_model, replace_weights
from stepwell.policy.engines.model_folder import read_weights
from stepwell.policy.engines.slot_attention import ATTENTION
from stepwell.policy.engines.slots import Slots
from stepwell.policy.protocol import GenerateRequest
from stepwell.ptb.evaluation.inside.answerer import BEAT_S, Texts, Unanswerable
from stepwell.ptb.evaluation.result import Answer
from stepwell.ptb.evaluation.wire import Alive, Question, Said, Setup

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class BatchAnswerer:
    """See the protocol `Answerer`.

    Args:
        folder: The model's.
        setup: How to answer.
        say: Is told now and then that it goes on.

    Raises:
        EngineError: the folder holds no model that transformers can run here, or its weights do not fit it.
        Unanswerable: its tokenizer is none.
    """

    def __init__(self, folder: Path, setup: Setup, say: Callable[[Said], None]) -> None:
        torch.set_num_threads(setup.engine.threads)
        self._setup = setup
        self._say = say
        self._dtype = _DTYPES[setup.engine.dtype]
        self._device = torch.device(setup.engine.device)
        self._model = open_model(folder, self._dtype, self._device, ATTENTION)
        # transformers makes up what a folder lacks; here each tensor has to be there, in its shape.
        replace_weights(self._model, read_weights(folder))
        config: Any = self._model.config.get_text_config()
        self._positions = min(int(config.max_position_embeddings), setup.engine.max_context)
        self._texts = Texts(folder / "tokenizer.json", setup, int(config.vocab_size))
        self._beaten_at = time.monotonic()

    @property
    def environment(self) -> dict[str, str]:
        """See the protocol."""
        return {
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "tokenizers": tokenizers.__version__,
            "platform": f"{platform.system()} {platform.machine()}",
            "processor": torch.backends.cpu.get_cpu_capability(),
            "threads": str(torch.get_num_threads()),
            "dtype": self._setup.engine.dtype,
            "device": self._setup.engine.device,
        }

    def answer(self, questions: Sequence[Question]) -> list[Answer]:
        """See the protocol."""
        running: list[Running | None] = []
        asked: list[tuple[int, ...]] = [self._texts.ids(one.prompt) for one in questions]
        for question, ids in zip(questions, asked, strict=True):
            room = self._positions - len(ids)
            running.append(Running(self._request(question, ids, room), _wanted) if room > 0 else None)
        under_way = [one for one in running if one is not None]
        if under_way:
            self._run(under_way)
        return [self._answer(one, len(ids)) for one, ids in zip(running, asked, strict=True)]

    def _request(self, question: Question, ids: tuple[int, ...], room: int) -> GenerateRequest:
        return GenerateRequest(
            token_ids=ids,
            max_tokens=min(question.max_tokens, room),
            temperature=self._setup.temperature,
            top_p=self._setup.top_p,
            seed=question.seed,
            stop_token_ids=self._texts.stop_ids,
            version=0,
        )

    def _run(self, sequences: Sequence[Running]) -> None:
        longest = max(len(one.request.token_ids) + one.request.max_tokens for one in sequences)
        shape = cache_shape(self._model, len(sequences), longest)
        batcher = ContinuousBatcher(self._model, Slots(shape, self._dtype, self._device), len(sequences))
        for sequence in sequences:
            batcher.add(sequence)
        try:
            while not batcher.idle:
                batcher.step()
                self._beat(sequences)
        except FloatingPointError as error:
            raise Unanswerable(f"the model cannot be sampled from: {error}") from error

    def _beat(self, sequences: Sequence[Running]) -> None:
        now = time.monotonic()
        if now - self._beaten_at > BEAT_S:
            self._beaten_at = now
            self._say(Alive(tokens=sum(len(one.token_ids) for one in sequences)))

    def _answer(self, sequence: Running | None, prompt_tokens: int) -> Answer:
        if sequence is None:
            return Answer(text="", end="no_room", prompt_tokens=prompt_tokens, tokens=0)
        assert sequence.finish_reason is not None
        return self._texts.answer(sequence.token_ids, prompt_tokens, sequence.finish_reason)


def _wanted() -> bool:
    return False
