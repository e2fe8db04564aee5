"""From the rows of a batch to tensors."""

from collections.abc import Sequence

import torch
from torch import Tensor

from stepwell.policy.trainers.protocol import TrainBatch
from stepwell.policy.weights import DigestMismatch
from stepwell.rl.samples import TrainSample


def batch_row(batch: TrainBatch, index: int) -> TrainSample:
    """A row that the manifest puts into a micro-batch.

    Raises:
        DigestMismatch: it is not there.
    """
    sample = batch.samples[index]
    if sample is None:
        raise DigestMismatch(f"{batch.recorded[index].stream} is to go through the model, but has no row")
    return sample


def row_tensors(samples: Sequence[TrainSample], length: int) -> tuple[Tensor, Tensor, Tensor]:
    """Ids (B, T) padded on the right, flat indices of the generated tokens (N), and the row of each (N)."""
    ids_BT = torch.zeros(len(samples), length, dtype=torch.int64)
    generated_BT = torch.zeros(len(samples), length, dtype=torch.bool)
    for row, sample in enumerate(samples):
        ids_BT[row, : len(sample.token_ids)] = torch.tensor(sample.token_ids)
        generated_BT[row, : len(sample.generated)] = torch.tensor(sample.generated)
    chosen_N = generated_BT.flatten().nonzero().squeeze(1)
    return ids_BT, chosen_N, chosen_N // length
