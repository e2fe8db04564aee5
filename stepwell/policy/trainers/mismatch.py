"""Does an engine compute what its weights say? Compares a batch's recorded log-probabilities with the trainer's own
under the version that generated it, which with staleness is not the version that is trained."""

from pathlib import Path
from typing import NamedTuple

import torch

from stepwell.policy.trainers.batch_rows import batch_row, row_tensors
from stepwell.policy.trainers.protocol import TrainBatch
from stepwell.policy.trainers.torch_model import TorchModel

COMPARED_POSITIONS = 8192
"""Positions that are scored, at least one micro-batch: enough to see a wrong cache, cheap beside the step."""


class Mismatch(NamedTuple):
    """|log-probability by the trainer - by the engine| over generated tokens, in nats."""

    mean: float
    max: float
    tokens: int


@torch.no_grad()
def mismatch_under(folder: Path, batch: TrainBatch) -> Mismatch:
    """Scores the first micro-batches of a batch with the weights of a Hugging Face folder.

    Raises:
        WeightsError: the folder cannot be loaded.
        DigestMismatch: a row is missing.
    """
    model = TorchModel.from_folder(folder)
    total, largest, tokens, positions = 0.0, 0.0, 0, 0
    for micro_batch in batch.manifest.micro_batches:
        if positions >= COMPARED_POSITIONS:
            break
        rows = [batch_row(batch, index) for index in micro_batch.samples]
        ids_BT, chosen_N, _ = row_tensors(rows, micro_batch.length)
        engine_N = torch.tensor([value for row in rows for value in row.logprobs], dtype=torch.float32)
        difference_N = (model.logprobs(ids_BT, chosen_N, batch.manifest.temperature) - engine_N).abs()
        total += float(difference_N.sum(dtype=torch.float64))
        largest = max(largest, float(difference_N.max()))
        tokens += len(engine_N)
        positions += ids_BT.numel()
    return Mismatch(total / max(1, tokens), largest, tokens)
