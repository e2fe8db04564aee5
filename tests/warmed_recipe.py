"""A recipe that warms a tiny policy up on demonstrations, and that policy."""

from pathlib import Path
from typing import Any

from transformers import LlamaConfig

from tests.byte_tokenizer import TOKENIZER
from tests.small_models import make_folder

CONTEXT = 4096
"""A byte is a token here."""


def make_policy(folder: Path) -> Path:
    """A model folder of the Llama family with random weights, which speaks bytes."""
    config = LlamaConfig(
        vocab_size=TOKENIZER.get_vocab_size(),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        intermediate_size=16,
        tie_word_embeddings=True,
        max_position_embeddings=CONTEXT,
    )
    make_folder(folder, config)
    TOKENIZER.save(str(folder / "tokenizer.json"))
    return folder


def warmed_recipe(folder: Path, **sections: dict[str, Any]) -> dict[str, Any]:
    """The recipe as a table; sections are put over its own."""
    warm_up = {"tasks": 2, "steps": 3, "demonstrations": 2, "optimiser": {"learning_rate": 1e-3}}
    values: dict[str, Any] = {
        "run": {"max_steps": 1, "prompts_per_step": 1, "samples_per_prompt": 2},
        "policy": {"kind": "folder", "path": str(folder), "warm_up": warm_up},
        "tasks": {"source": "package", "packages": ["inflection"], "train": 3, "place_lines": 6},
        "agent": {
            "tools": "codeact",
            "max_turns": 3,
            "max_context_tokens": CONTEXT,
            "max_turn_tokens": 512,
            "functions": ["str_replace_editor", "finish"],
            "prompt": "examples",
        },
        "rl": {"force_on_policy_ratio": False},
        "optimiser": {"learning_rate": 1e-3},
        "engine": {"max_context": CONTEXT, "max_batch": 4},
        "validation": {"tasks": 1, "samples": 1, "initial": True},
    }
    return {"name": "warmed"} | values | {name: values.get(name, {}) | keys for name, keys in sections.items()}
