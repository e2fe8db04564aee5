"""The trainer on Megatron-core against the plain one: the same step, in the layouts that two processes allow.

    python -m bench.trainer_backends [--model FOLDER] [--steps 3]

Each process has one thread. Without a folder: the micro policy that is shipped. Prints the ratio of wall
clock to that of the plain trainer with as many processes, the best of some steps each; and how far log-probabilities
and gradient norm are apart. On processors, plain attention and small matrices: what is measured is the price of the
second library and of its exchanges, not what it gains on GPUs.
"""

import argparse
import sys
from pathlib import Path
from typing import NamedTuple

from stepwell.policy.micro.shipped import FOLDER
from stepwell.policy.trainers.megatron.layout import Layout
from stepwell.policy.trainers.megatron.trainer import MegatronTrainer
from stepwell.policy.trainers.protocol import StepResult, Trainer
from stepwell.policy.trainers.ranked_trainer import RankedTrainer
from stepwell.policy.trainers.torch_trainer import TorchTrainer
from stepwell.rl.config import GrpoConfig, OptimiserConfig, PackingConfig
from stepwell.rl.samples import TrainSample

sys.path.append(str(Path(__file__).parents[1]))
from bench.trainer import make_batch, make_samples, with_own_logprobs

GRPO, OPTIMISER = GrpoConfig(), OptimiserConfig(learning_rate=1e-6)
GROUP = 16
TIMEOUT_S = 600.0


def start(folder: Path, name: str) -> Trainer:
    """A trainer by its name in the table."""
    if name == "torch":
        return TorchTrainer.from_folder(folder, OPTIMISER, GRPO, threads=1)
    if name == "torch, 2 ranks":
        return RankedTrainer.from_folder(folder, OPTIMISER, GRPO, threads=1, ranks=2, timeout_s=TIMEOUT_S)
    layout = {"megatron": Layout(), "megatron, data 2": Layout(1, 2), "megatron, tensor 2": Layout(2)}[name]
    return MegatronTrainer.from_folder(folder, OPTIMISER, GRPO, threads=1, layout=layout, timeout_s=TIMEOUT_S)


class Measured(NamedTuple):
    """Some steps on the same rows."""

    first: StepResult
    """What is compared: all trainers are at the same version then."""
    best_s: float
    """Wall clock of the quickest."""


def measure(trainer: Trainer, samples: list[TrainSample], steps: int) -> Measured:
    """Trains some steps."""
    results = [trainer.step(make_batch(trainer, samples, GROUP, PackingConfig(), 0)) for _ in range(steps)]
    return Measured(results[0], min(each.forward_backward_s + each.optimiser_s for each in results))


def main() -> None:
    """Prints the comparison."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--model", type=Path, help="Hugging Face folder")
    arguments.add_argument("--steps", type=int, default=3)
    arguments.add_argument("--prompts", type=int, default=4)
    options = arguments.parse_args()
    folder: Path = options.model or FOLDER
    plain = TorchTrainer.from_folder(folder, OPTIMISER, GRPO, threads=1)
    samples = with_own_logprobs(plain, make_samples(options.prompts * GROUP, 500, 170, 40, seed=0))
    plain.close()
    for rivals in (("torch", "megatron"), ("torch, 2 ranks", "megatron, data 2", "megatron, tensor 2")):
        baseline: Measured | None = None
        for name in rivals:
            trainer = start(folder, name)
            try:
                result = measure(trainer, samples, options.steps)
            finally:
                trainer.close()
            baseline = baseline or result
            print(
                f"{name:20} {result.best_s:6.2f} s, {result.first.tokens / result.best_s:6.0f} tokens/s, time ratio "
                f"{result.best_s / baseline.best_s:5.2f}; mismatch {result.first.mismatch_mean:.1e} nats, "
                f"gradient norm {abs(result.first.grad_norm / baseline.first.grad_norm - 1):.1e} apart"
            )


if __name__ == "__main__":
    main()
