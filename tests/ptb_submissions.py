"""Submissions for evaluations: tiny random models with a tokenizer, and what a hostile agent makes of them."""

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from transformers import LlamaConfig, PreTrainedConfig, Qwen3Config

from stepwell.ptb.evaluation import EngineSettings, EvaluationOrder
from tests.byte_tokenizer import byte_tokenizer
from tests.ptb_rows import gsm8k_rows, write_lines
from tests.small_models import make_folder

BASE_MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct"
"""Whose template the tiny models are asked in: their trials say so, and nothing else does."""
_SHAPE: dict[str, Any] = {
    "vocab_size": 272,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "intermediate_size": 48,
    "max_position_embeddings": 4096,
}
QWEN3 = Qwen3Config(**_SHAPE, head_dim=16, tie_word_embeddings=True)
LLAMA = LlamaConfig(**_SHAPE, tie_word_embeddings=False)


def submit(folder: Path, seed: int = 0, config: PreTrainedConfig = QWEN3, tokenizer: Tokenizer | None = None) -> Path:
    """A submitted model: weights, configuration, a tokenizer of bytes, settings of generation."""
    make_folder(folder, config, seed)
    (tokenizer or byte_tokenizer()).save(str(folder / "tokenizer.json"))
    write_json(folder / "generation_config.json", {"temperature": 0.7, "top_p": 0.9, "max_new_tokens": 5})
    return folder


def write_json(path: Path, content: object) -> Path:
    """A file of JSON."""
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def edit_json(path: Path, **fields: object) -> Path:
    """The same file with other fields."""
    return write_json(path, {**json.loads(path.read_text(encoding="utf-8")), **fields})


def gsm8k_files(folder: Path, rows: int = 5) -> dict[str, Path]:
    """GSM8K by hand: as many test rows, whose results no random model hits, and two worked examples."""
    folder.mkdir(parents=True, exist_ok=True)
    return {
        "test": write_lines(folder / "test.jsonl", gsm8k_rows([str(7_000_000 + number) for number in range(rows)])),
        "train": write_lines(folder / "train.jsonl", gsm8k_rows(["1", "2"])),
    }


def order_for(model: Path, files: dict[str, Path], **fields: Any) -> EvaluationOrder:
    """An order over five rows in batches of two, of a few tokens each."""
    settings: dict[str, Any] = {
        "model": model,
        "base_model": BASE_MODEL,
        "benchmark": "gsm8k",
        "files": files,
        "rows": 5,
        "seeds": (11, 12),
        "max_tokens": (12,),
        "engine": EngineSettings(at_once=2),
    }
    return EvaluationOrder(**{**settings, **fields})
