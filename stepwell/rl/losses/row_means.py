"""Sums and means over the tokens of each row."""

import torch
from torch import Tensor


def row_lengths(row_N: Tensor, like_B: Tensor) -> Tensor:
    """Tokens of each row, in the dtype of `like_B`, which has one entry a row."""
    return torch.zeros_like(like_B).index_add_(0, row_N, torch.ones_like(row_N, dtype=like_B.dtype))


def row_means(values_N: Tensor, row_N: Tensor, lengths_B: Tensor) -> Tensor:
    """Mean of each row's values; every row has at least one."""
    return torch.zeros_like(lengths_B).index_add(0, row_N, values_N) / lengths_B
