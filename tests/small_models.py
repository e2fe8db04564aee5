"""Tiny random models and batches for the trainers: the arithmetic is real."""

import random
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig, PreTrainedConfig, Qwen3Config

from stepwell.policy.trainers.protocol import ComputeDtype, TrainBatch
from stepwell.policy.trainers.torch_trainer import TorchTrainer
from stepwell.policy.weights import save_folder, weights_of
from stepwell.rl.batching import RolloutFacts, build_manifest
from stepwell.rl.config import GrpoConfig, OptimiserConfig, PackingConfig
from stepwell.rl.masks import MaskReason
from stepwell.rl.samples import TrainSample

QWEN3 = Qwen3Config(
    vocab_size=48,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=16,
    intermediate_size=48,
    tie_word_embeddings=True,
    max_position_embeddings=256,
)
LLAMA = LlamaConfig(
    vocab_size=48,
    hidden_size=24,
    num_hidden_layers=2,
    num_attention_heads=3,
    num_key_value_heads=3,
    intermediate_size=48,
    tie_word_embeddings=False,
    max_position_embeddings=256,
)
GPT2 = GPT2Config(vocab_size=48, n_embd=24, n_layer=2, n_head=2, n_positions=256)
OPEN = GrpoConfig(importance="none", mismatch_max=None)
OPTIMISER = OptimiserConfig(learning_rate=1e-3, weight_decay=0.01)
PACKING = PackingConfig(micro_batch_tokens=128, pad_multiple=8)


def make_folder(folder: Path, config: PreTrainedConfig = QWEN3, seed: int = 0) -> Path:
    torch.manual_seed(seed)
    model: Any = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    save_folder(weights_of(model), model.config.to_dict(), folder)
    return folder


def make_trainer(
    folder: Path,
    grpo: GrpoConfig = OPEN,
    dtype: ComputeDtype = "float32",
    optimiser: OptimiserConfig = OPTIMISER,
    threads: int = 1,
) -> TorchTrainer:
    return TorchTrainer.from_folder(folder, optimiser, grpo, threads=threads, compute_dtype=dtype)


def make_samples(count: int, seed: int = 0) -> list[TrainSample]:
    """Rows of several turns: prompt, generated, observation, generated, …"""
    dice = random.Random(seed)
    samples: list[TrainSample] = []
    for _ in range(count):
        mask = [False]
        for _ in range(dice.randint(1, 3)):
            mask += [False] * dice.randint(1, 12) + [True] * dice.randint(1, 6)
        ids = tuple(dice.randrange(48) for _ in mask)
        logprobs = tuple(-dice.uniform(2, 5) for flag in mask if flag)
        samples.append(TrainSample(token_ids=ids, generated=tuple(mask), logprobs=logprobs))
    return samples


def make_batch(
    samples: list[TrainSample],
    rewards: list[float],
    *,
    grpo: GrpoConfig = OPEN,
    packing: PackingConfig = PACKING,
    masks: dict[int, MaskReason] | None = None,
    version: int = 0,
    temperature: float = 1.0,
) -> TrainBatch:
    rollouts = [
        RolloutFacts(
            stream=f"rollout/r/0/{index // 4}/{index % 4}",
            prompt=index // 4,
            sample=index % 4,
            turns=1,
            tokens=len(sample.token_ids),
            generated_tokens=sum(sample.generated),
            content=sample.content_digest(),
            reward=rewards[index],
            mask=(masks or {}).get(index),
        )
        for index, sample in enumerate(samples)
    ]
    manifest = build_manifest(
        step=version, parent_version=version, temperature=temperature, rollouts=rollouts, grpo=grpo, packing=packing
    )
    return TrainBatch(manifest=manifest, samples=tuple(samples))


REWARDS = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0]
"""Three groups of four; the second has no spread."""
