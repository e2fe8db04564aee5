"""The supervised warm-up: trains tokenizer and model on demonstrations, and leaves a Hugging Face folder.

Equal seed, settings, tasks and numeric environment (processor, threads, library versions) give equal bits. One
process and no worker threads of its own: demonstrations are made between the steps, at under a millisecond each.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional
from transformers import Qwen3ForCausalLM

from stepwell.agent.chat import MICRO, ChatRenderer
from stepwell.policy.micro.config import WarmUpConfig
from stepwell.policy.micro.demonstrations import Demonstration, Demonstrator
from stepwell.policy.micro.model import new_model, save_model
from stepwell.policy.micro.tokenizer import train_tokenizer
from stepwell.tasks.task import Task

_WINDOW = 16
"""Batches whose demonstrations are sorted by length together, so that little is padding."""
_PAD_TO = 32
"""Lengths are padded to multiples of this: few shapes, few kernels to set up."""
_ADAMW_BETAS = (0.9, 0.95)
_CLIP_NORM = 1.0


@dataclass(frozen=True)
class WarmUpStep:
    """What a step of the warm-up reports."""

    step: int
    """From 1."""
    steps: int
    """How many there will be."""
    loss: float
    """Mean negative log-likelihood of the expert's tokens, in nats."""
    elapsed_s: float
    """Wall clock since the warm-up began."""


@dataclass(frozen=True)
class _Batch:
    """Demonstrations padded to one length; B demonstrations, T tokens."""

    token_ids_BT: Tensor
    acted_BT: Tensor
    """True at the expert's tokens."""
    real_BT: Tensor
    """False at padding."""


def warm_up(
    seed: int,
    config: WarmUpConfig,
    tasks: Sequence[Task],
    folder: Path,
    progress: Callable[[WarmUpStep], None] = lambda _: None,
) -> None:
    """Trains the micro policy on demonstrations of `tasks` and writes it to `folder`.

    Raises:
        ValueError: a task is not of the training split.
    """
    began = time.monotonic()
    threads = torch.get_num_threads()
    torch.set_num_threads(config.threads)
    try:
        tokenizer = train_tokenizer(tasks, config.model.vocabulary)
        model = new_model(config.model, tokenizer, seed)
        # On a CPU, in bfloat16 and at these lengths, plain matrix products train 1.5 times faster than fused attention.
        model.set_attn_implementation("eager")
        optimizers = _optimizers(model, config)
        batches = _batches(seed, config, tasks, tokenizer)
        for step in range(config.steps):
            loss = _train_step(model, optimizers, next(batches), config, _schedule(step, config))
            progress(WarmUpStep(step + 1, config.steps, loss, time.monotonic() - began))
        save_model(model, tokenizer, folder)
    finally:
        torch.set_num_threads(threads)


def _optimizers(model: Qwen3ForCausalLM, config: WarmUpConfig) -> list[torch.optim.Optimizer]:
    """Muon for the matrices inside the layers, AdamW for embeddings and norms."""
    hidden = [weight for weight in model.model.layers.parameters() if weight.dim() == 2]
    ids = {id(weight) for weight in hidden}
    rest = [weight for weight in model.parameters() if id(weight) not in ids]
    muon = torch.optim.Muon(hidden, lr=config.muon_learning_rate, weight_decay=0.0, momentum=0.95)
    return [muon, torch.optim.AdamW(rest, lr=config.adamw_learning_rate, weight_decay=0.0, betas=_ADAMW_BETAS)]


def _schedule(step: int, config: WarmUpConfig) -> float:
    """Factor of the learning rates at a step, from 0."""
    return min((step + 1) / config.rise, max(0.05, 1 - step / config.steps))


def _train_step(
    model: Qwen3ForCausalLM,
    optimizers: list[torch.optim.Optimizer],
    batch: _Batch,
    config: WarmUpConfig,
    factor: float,
) -> float:
    with torch.autocast("cpu", torch.bfloat16):
        logits_BTV = model(input_ids=batch.token_ids_BT[:, :-1], use_cache=False).logits
    losses_BT = functional.cross_entropy(
        logits_BTV.float().transpose(1, 2), batch.token_ids_BT[:, 1:], reduction="none"
    )
    acted_BT = batch.acted_BT[:, 1:].float()
    weights_BT = torch.where(batch.acted_BT[:, 1:], 1.0, config.observation_weight) * batch.real_BT[:, 1:]
    ((losses_BT * weights_BT).sum() / weights_BT.sum()).backward()
    nn.utils.clip_grad_norm_(model.parameters(), _CLIP_NORM)
    peaks = (config.muon_learning_rate, config.adamw_learning_rate)
    for optimizer, peak in zip(optimizers, peaks, strict=True):
        for group in optimizer.param_groups:
            group["lr"] = peak * factor
        optimizer.step()
        optimizer.zero_grad()
    return float((losses_BT * acted_BT).sum().detach() / acted_BT.sum())


def _batches(seed: int, config: WarmUpConfig, tasks: Sequence[Task], tokenizer: Tokenizer) -> Iterator[_Batch]:
    """Endless batches: every task once before any twice, each time in another order."""
    random = Random(seed)
    renderer = ChatRenderer(tokenizer, MICRO)
    demonstrator = Demonstrator(renderer, lambda text: tokenizer.encode(text).ids, config.expert)
    stream = _shuffled(tasks, random)
    while True:
        window: list[Demonstration] = []
        while len(window) < config.demonstrations * _WINDOW:
            demonstration = demonstrator.demonstrate(next(stream), random)
            if len(demonstration.token_ids) <= config.model.context:
                window.append(demonstration)
        window.sort(key=lambda demonstration: len(demonstration.token_ids))
        starts = list(range(0, len(window), config.demonstrations))
        random.shuffle(starts)
        yield from (_pad(window[start : start + config.demonstrations]) for start in starts)


def _shuffled(tasks: Sequence[Task], random: Random) -> Iterator[Task]:
    while True:
        yield from random.sample(tasks, len(tasks))


def _pad(demonstrations: Sequence[Demonstration]) -> _Batch:
    longest = max(len(demonstration.token_ids) for demonstration in demonstrations)
    # One more than a multiple: the last token is a target only.
    length = -(-(longest - 1) // _PAD_TO) * _PAD_TO + 1
    token_ids_BT = torch.zeros(len(demonstrations), length, dtype=torch.long)
    acted_BT = torch.zeros(len(demonstrations), length, dtype=torch.bool)
    real_BT = torch.zeros(len(demonstrations), length, dtype=torch.bool)
    for row, demonstration in enumerate(demonstrations):
        count = len(demonstration.token_ids)
        token_ids_BT[row, :count] = torch.tensor(demonstration.token_ids)
        acted_BT[row, :count] = torch.tensor(demonstration.acted)
        real_BT[row, :count] = True
    return _Batch(token_ids_BT, acted_BT, real_BT)
