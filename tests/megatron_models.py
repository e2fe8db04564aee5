"""Tiny models that can be cut in two, and batches for them."""

from transformers import LlamaConfig, Qwen3Config, Qwen3MoeConfig

from stepwell.policy.trainers.protocol import TrainBatch
from stepwell.rl.config import PackingConfig
from tests.small_models import REWARDS, make_batch, make_samples

QWEN3_2 = Qwen3Config(
    vocab_size=48,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=16,
    intermediate_size=48,
    tie_word_embeddings=True,
    max_position_embeddings=256,
)
LLAMA_4 = LlamaConfig(
    vocab_size=48,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=4,
    intermediate_size=48,
    tie_word_embeddings=False,
    max_position_embeddings=256,
)
QWEN3_MOE = Qwen3MoeConfig(
    vocab_size=48,
    hidden_size=32,
    num_hidden_layers=3,
    num_attention_heads=2,
    num_key_value_heads=2,
    head_dim=16,
    intermediate_size=48,
    moe_intermediate_size=24,
    num_experts=4,
    num_experts_per_tok=2,
    norm_topk_prob=True,
    mlp_only_layers=[1],
    tie_word_embeddings=False,
    max_position_embeddings=256,
)
NARROW = PackingConfig(micro_batch_tokens=64, pad_multiple=8)
"""So that there is something to deal among replicas."""


def batch_at(version: int, rewards: list[float] = REWARDS) -> TrainBatch:
    samples = make_samples(len(rewards), seed=version)
    return make_batch(samples, rewards, version=version, packing=NARROW)
