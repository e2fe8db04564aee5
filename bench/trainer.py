"""How fast the trainer is, against a plain loop that pads the whole batch alike and computes every logit.

    python -m bench.trainer [--model FOLDER] [--threads 2] [--dtype float32]

Without a folder: a Qwen3 of 0.87M parameters made on the spot. Prints tokens a second and a processor-second of
both, and the ratio of processor-seconds, which other work on the machine disturbs less.
"""

import argparse
import random
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from transformers import AutoModelForCausalLM, Qwen3Config, Qwen3ForCausalLM

from stepwell.policy.trainers.protocol import StepResult, TrainBatch, Trainer
from stepwell.policy.trainers.torch_trainer import TorchTrainer
from stepwell.policy.weights import save_folder, weights_of
from stepwell.rl.batching import RolloutFacts, build_manifest
from stepwell.rl.config import GrpoConfig, OptimiserConfig, PackingConfig
from stepwell.rl.samples import TrainSample


def micro_folder(parent: Path) -> Path:
    """A policy of the size that the micro recipe trains."""
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=768,
        hidden_size=128,
        num_hidden_layers=4,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=64,
        intermediate_size=384,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
    )
    save_folder(weights_of(Qwen3ForCausalLM(config)), config.to_dict(), parent / "micro")
    return parent / "micro"


def make_samples(count: int, vocabulary: int, length: int, generated: int, seed: int) -> list[TrainSample]:
    """Rows of about `length` tokens in four turns, about `generated` of them generated."""
    dice = random.Random(seed)
    samples: list[TrainSample] = []
    for _ in range(count):
        turn, rest = generated // 4, (length - generated) // 4
        mask: list[bool] = []
        for _ in range(4):
            mask += [False] * dice.randint(rest // 2, rest * 3 // 2) + [True] * dice.randint(turn // 2, turn * 3 // 2)
        mask[0] = False
        ids = [dice.randrange(vocabulary) for _ in mask]
        samples.append(TrainSample(token_ids=tuple(ids), generated=tuple(mask), logprobs=(-1.0,) * sum(mask)))
    return samples


def with_own_logprobs(trainer: TorchTrainer, samples: list[TrainSample]) -> list[TrainSample]:
    """The rows with the log-probabilities that an exact engine would have recorded."""
    scored: list[TrainSample] = []
    for sample in samples:
        values = trainer.probe(sample.token_ids)
        chosen = tuple(value for value, flag in zip(values, sample.generated[1:], strict=True) if flag)
        scored.append(sample.model_copy(update={"logprobs": chosen}))
    return scored


def make_batch(
    trainer: Trainer, samples: list[TrainSample], group: int, packing: PackingConfig, zero_groups: int
) -> TrainBatch:
    """A batch of groups, of which the first `zero_groups` all failed, the others half."""
    rollouts = [
        RolloutFacts(
            stream=f"rollout/bench/0/{index // group}/{index % group}",
            prompt=index // group,
            sample=index % group,
            turns=4,
            tokens=len(sample.token_ids),
            generated_tokens=sum(sample.generated),
            content=sample.content_digest(),
            reward=float(index % 2 and index // group >= zero_groups),
            mask=None,
        )
        for index, sample in enumerate(samples)
    ]
    manifest = build_manifest(
        step=trainer.version,
        parent_version=trainer.version,
        temperature=1.0,
        rollouts=rollouts,
        grpo=GrpoConfig(),
        packing=packing,
    )
    return TrainBatch(manifest=manifest, samples=tuple(samples))


class Cost(NamedTuple):
    """What something took."""

    wall_s: float
    processor_s: float

    def line(self, tokens: int) -> str:
        """In words."""
        return (
            f"{self.wall_s:.2f} s, {tokens / self.wall_s:,.0f} tokens/s; "
            f"{self.processor_s:.2f} processor-s, {tokens / self.processor_s:,.0f} tokens/processor-s"
        )


def cheapest(work: Callable[[], object], times: int) -> Cost:
    """The least of several runs, in processor-seconds."""
    costs: list[Cost] = []
    for _ in range(times):
        wall, processor = time.perf_counter(), time.process_time()
        work()
        costs.append(Cost(time.perf_counter() - wall, time.process_time() - processor))
    return min(costs, key=lambda cost: cost.processor_s)


def cost_of_plain(folder: Path, samples: list[TrainSample], rows: int, dtype: torch.dtype) -> Cost:
    """One step of the plain loop: `rows` rows at a time, padded to the longest row of the batch."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-6, foreach=True)
    columns = max(len(sample.token_ids) for sample in samples)

    def step() -> None:
        for start in range(0, len(samples), rows):
            ids = torch.zeros(min(rows, len(samples) - start), columns, dtype=torch.int64)
            mask, attended = torch.zeros_like(ids, dtype=torch.float32), torch.zeros_like(ids)
            for row, sample in enumerate(samples[start : start + rows]):
                size = len(sample.token_ids)
                ids[row, :size], attended[row, :size] = torch.tensor(sample.token_ids), 1
                mask[row, :size] = torch.tensor(sample.generated, dtype=torch.float32)
            logits = model(input_ids=ids, attention_mask=attended, use_cache=False).logits[:, :-1].float()
            logprobs = logits.log_softmax(-1).gather(2, ids[:, 1:, None])[..., 0]
            ratio = (logprobs - logprobs.detach()).exp()
            (-(ratio * mask[:, 1:]).sum() / mask.sum()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()

    return cheapest(step, 2)


def main() -> None:
    """Prints the comparison."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--model", type=Path, help="Hugging Face folder")
    arguments.add_argument("--threads", type=int, default=2)
    arguments.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    arguments.add_argument("--prompts", type=int, default=8)
    arguments.add_argument("--group", type=int, default=16)
    arguments.add_argument("--length", type=int, default=170, help="mean tokens of a row")
    arguments.add_argument("--generated", type=int, default=40, help="mean generated tokens of a row")
    arguments.add_argument("--micro-batch-tokens", type=int, default=PackingConfig().micro_batch_tokens)
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder: Path = options.model or micro_folder(Path(scratch))
        grpo, optimiser = GrpoConfig(), OptimiserConfig(learning_rate=1e-6)
        trainer = TorchTrainer.from_folder(
            folder, optimiser, grpo, threads=options.threads, compute_dtype=options.dtype
        )
        packing = PackingConfig(micro_batch_tokens=options.micro_batch_tokens)
        samples = make_samples(options.prompts * options.group, 500, options.length, options.generated, seed=0)
        samples = with_own_logprobs(trainer, samples)
        tokens = sum(len(sample.token_ids) for sample in samples)
        print(f"{len(samples)} rows, {tokens} tokens, {sum(sum(s.generated) for s in samples)} generated")
        costs: list[Cost] = []
        for without_spread in (0, options.prompts // 2):
            results: list[StepResult] = []

            def step(without_spread: int = without_spread, results: list[StepResult] = results) -> None:
                results.append(trainer.step(make_batch(trainer, samples, options.group, packing, without_spread)))

            costs.append(cheapest(step, 3))
            padding = results[0].padded_tokens / results[0].tokens - 1
            print(f"trainer, {without_spread} of {options.prompts} groups without a spread: {costs[-1].line(tokens)}")
            print(f"    padding {padding:.1%}, mean |trainer - engine| {results[0].mismatch_mean:.2g} nats")
        rows = max(1, options.micro_batch_tokens // max(len(sample.token_ids) for sample in samples))
        plain = cost_of_plain(folder, samples, rows, getattr(torch, options.dtype))
        print(f"plain loop: {plain.line(tokens)}")
        print("ratio, all groups with a spread:", f"{plain.processor_s / costs[0].processor_s:.2f}")
        print("ratio, half of them:            ", f"{plain.processor_s / costs[1].processor_s:.2f}")
    print("peak memory:", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()
