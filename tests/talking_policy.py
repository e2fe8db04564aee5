"""A policy that says one of a few things: a real model, small enough to train in a test, never at a loss for a call.

Each thing is a token of its own, and so is the text that the tools are told by: a turn is one token, a prompt is short.
The model is random but for one direction that every hidden state shares, by which those tokens are far likelier than
all others; which of them is left to chance, and to training.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken
from transformers import AutoModelForCausalLM, LlamaConfig

from stepwell.policy.weights import save_folder, weights_of
from tests.byte_tokenizer import byte_tokenizer

WIDTH = 32
SHARED = 10.0
"""What every embedding has in its first place: many times what is in the others."""
LIKELIHOOD = 2.0
"""Weight of the first place in the logits of what is said."""


def write_talking_policy(folder: Path, says: Sequence[str], knows: Sequence[str] = (), *, context: int) -> Path:
    """Writes a Hugging Face folder.

    Args:
        folder: Must not exist; is returned.
        says: What it says.
        knows: Texts that are one token each.
        context: Most tokens.
    """
    tokenizer = byte_tokenizer()
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in (*says, *knows)])
    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=WIDTH,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        intermediate_size=WIDTH,
        tie_word_embeddings=False,
        max_position_embeddings=context,
    )
    torch.manual_seed(0)
    model: Any = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        model.model.embed_tokens.weight[:, 0] = SHARED
        model.lm_head.weight[:, 0] = 0.0
        for text in says:
            model.lm_head.weight[tokenizer.token_to_id(text), 0] = LIKELIHOOD
    save_folder(weights_of(model), model.config.to_dict(), folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder
