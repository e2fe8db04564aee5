"""The micro policy as a Hugging Face model and as a folder that anything loads."""

from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from stepwell.policy.micro.config import MicroModelConfig
from stepwell.policy.micro.tokenizer import CHAT_TEMPLATE, PAD

STOP = "<|end|>"


def new_model(config: MicroModelConfig, tokenizer: Tokenizer, seed: int) -> Qwen3ForCausalLM:
    """Random float32 weights from a seed; the caller's random state is left as it was."""
    settings = Qwen3Config(
        architectures=["Qwen3ForCausalLM"],
        dtype=torch.float32,
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=config.hidden,
        intermediate_size=config.feed_forward,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=config.kv_heads,
        head_dim=config.head_dim,
        max_position_embeddings=config.context,
        initializer_range=0.02,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.token_to_id(PAD),
        bos_token_id=None,
        eos_token_id=tokenizer.token_to_id(STOP),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Qwen3ForCausalLM(settings)


def save_model(model: Qwen3ForCausalLM, tokenizer: Tokenizer, folder: Path) -> None:
    """Writes `config.json`, `generation_config.json`, `model.safetensors` and the tokenizer's files."""
    folder.mkdir(parents=True, exist_ok=True)
    model.config.save_pretrained(folder)
    GenerationConfig(
        eos_token_id=tokenizer.token_to_id(STOP), pad_token_id=tokenizer.token_to_id(PAD), do_sample=True
    ).save_pretrained(folder)
    # The head is tied to the embedding, which is stored once.
    weights = {name: weight for name, weight in model.state_dict().items() if name != "lm_head.weight"}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=STOP,
        model_max_length=model.config.max_position_embeddings,
        clean_up_tokenization_spaces=False,
        chat_template=CHAT_TEMPLATE,
    )
    wrapped.save_pretrained(folder)
