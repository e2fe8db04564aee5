"""Tiny random models and batches for the trainers: the arithmetic is real."""

import random
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig, PreTrainedConfig, Qwen3Config

from stepwell.events.rows_recorded import RecordedRow
from stepwell.policy.trainers.protocol import ComputeDtype, TrainBatch
from stepwell.policy.trainers.torch_trainer import TorchTrainer
from stepwell.policy.weights import save_folder, weights_of
from stepwell.rl.batching import RolloutFacts, build_manifest
from stepwell.rl.config import GrpoConfig, OptimiserConfig, PackingConfig
from stepwell.rl.masks import MaskReason
from stepwell.rl.samples import TrainSample, rollout_content

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
    """Rollouts of one row each, four a prompt."""
    return make_batch_of_rows(
        [[sample] for sample in samples],
        rewards,
        grpo=grpo,
        packing=packing,
        masks=masks,
        version=version,
        temperature=temperature,
    )


def make_batch_of_rows(
    rollouts: list[list[TrainSample]],
    rewards: list[float],
    *,
    grpo: GrpoConfig = OPEN,
    packing: PackingConfig = PACKING,
    masks: dict[int, MaskReason] | None = None,
    version: int = 0,
    temperature: float = 1.0,
) -> TrainBatch:
    """Rollouts of several rows, four a prompt."""
    recorded = [[_recorded(turn, row) for turn, row in enumerate(rows)] for rows in rollouts]
    facts = [
        RolloutFacts(
            stream=f"rollout/r/0/{index // 4}/{index % 4}",
            prompt=index // 4,
            sample=index % 4,
            turns=len(rows),
            tokens=sum(row.tokens for row in rows),
            generated_tokens=sum(row.generated_tokens for row in rows),
            content=rollout_content([row.content for row in rows]),
            reward=rewards[index],
            mask=(masks or {}).get(index),
            rows=tuple(rows) if len(rows) > 1 else (),
        )
        for index, rows in enumerate(recorded)
    ]
    manifest = build_manifest(
        step=version, parent_version=version, temperature=temperature, rollouts=facts, grpo=grpo, packing=packing
    )
    return TrainBatch(manifest=manifest, samples=tuple(row for rows in rollouts for row in rows))


def _recorded(turn: int, row: TrainSample) -> RecordedRow:
    return RecordedRow(
        turns=(turn,), tokens=len(row.token_ids), generated_tokens=sum(row.generated), content=row.content_digest()
    )


def plain_gradient(folder: Path, batch: TrainBatch, temperature: float) -> tuple[dict[str, torch.Tensor], float, float]:
    """Gradient of the unweighted policy gradient in float64: one row at a time, unpadded, all logits, sdpa."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64, attn_implementation="sdpa")
    total = sum(s.generated_tokens for s in batch.manifest.samples if s.mask is None)
    difference, divergence = 0.0, 0.0
    for sample, recorded in zip(batch.samples, batch.recorded, strict=True):
        assert sample is not None
        ids = torch.tensor([sample.token_ids])
        logprobs = (model(input_ids=ids).logits[0, :-1] / temperature).log_softmax(-1)
        chosen = logprobs.gather(1, ids[0, 1:, None])[:, 0][torch.tensor(sample.generated[1:])]
        ratio = chosen.detach() - torch.tensor(sample.logprobs, dtype=torch.float64)
        difference += float(ratio.abs().sum())
        divergence += float((ratio.exp() - 1 - ratio).sum())
        if recorded.mask is None:
            (-recorded.advantage * chosen.sum() / total).backward()
    gradient = {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}
    generated = sum(s.generated_tokens for s in batch.manifest.samples)
    return gradient, difference / generated, divergence / generated


REWARDS = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0]
"""Three groups of four; the second has no spread."""
