"""Tiny models made from seeds, their plain forward pass as the reference, and the engines under test."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from stepwell.policy.engines import EngineConfig, make_engine
from stepwell.policy.protocol import Engine

VOCAB, MAX_CONTEXT = 512, 320


@dataclass(frozen=True)
class Models:
    """Folders of one architecture with several weights, and what plain transformers says of them."""

    root: Path
    tied: bool

    def folder(self, seed: int) -> Path:
        folder = self.root / str(seed)
        if not folder.exists():
            torch.manual_seed(seed)
            config = Qwen3Config(
                vocab_size=VOCAB,
                hidden_size=64,
                intermediate_size=128,
                num_hidden_layers=2,
                num_attention_heads=2,
                num_key_value_heads=1,
                head_dim=32,
                max_position_embeddings=512,
                tie_word_embeddings=self.tied,
                initializer_range=0.15,
                eos_token_id=None,
                bos_token_id=None,
            )
            Qwen3ForCausalLM(config).save_pretrained(folder)
        return folder

    def logprobs(self, seed: int, token_ids: tuple[int, ...], temperature: float = 1.0) -> torch.Tensor:
        """Log-probabilities (positions, vocabulary) after each token, in float64 from a float32 forward pass."""
        model = _opened(self.folder(seed))
        with torch.inference_mode():
            logits = model(torch.tensor([token_ids])).logits[0].double()
        return torch.log_softmax(logits / temperature, dim=-1)


@cache
def _opened(folder: Path) -> Qwen3ForCausalLM:
    return Qwen3ForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


@dataclass(frozen=True)
class Bench:
    """An engine and the models it was made for."""

    kind: str
    engine: Engine
    models: Models


@pytest.fixture(scope="session")
def tied_models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    return Models(tmp_path_factory.mktemp("tied"), tied=True)


@pytest.fixture(scope="session")
def untied_models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    return Models(tmp_path_factory.mktemp("untied"), tied=False)


async def _bench(kind: str, models: Models) -> Bench:
    config = EngineConfig.model_validate(
        {"kind": kind, "max_context": MAX_CONTEXT, "max_batch": 16} | ({"kv_cache_mib": 64} if kind == "vllm" else {})
    )
    return Bench(kind, await make_engine(config, models.folder(1)), models)


@pytest.fixture(scope="session", params=["transformers-tied", "transformers-untied", "vllm-tied"])
async def started(request: pytest.FixtureRequest, tied_models: Models, untied_models: Models) -> AsyncIterator[Bench]:
    """One engine of each kind, started once."""
    kind, ties = request.param.split("-")
    bench = await _bench(kind, tied_models if ties == "tied" else untied_models)
    yield bench
    await bench.engine.close()


@pytest.fixture
async def bench(started: Bench) -> Bench:
    """The engine, serving the weights of seed 1 as version 1."""
    await started.engine.load(1, started.models.folder(1))
    return started
