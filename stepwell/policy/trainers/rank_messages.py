"""What rank 0 tells the other ranks, and what they answer. All are small: a pipe's buffer holds them, so that telling a
rank that is stopped does not block."""

from dataclasses import dataclass
from pathlib import Path

from stepwell.events.numbers import WeightDigests
from stepwell.policy.trainers.micro_batches import Tally
from stepwell.policy.trainers.protocol import ComputeDtype
from stepwell.rl.config import GrpoConfig, OptimiserConfig


@dataclass(frozen=True)
class RankSpec:
    """First message to a rank: who it is, and what it holds."""

    rank: int
    ranks: int
    timeout_s: float
    """Longest wait of an exchange."""
    folder: Path
    optimiser: OptimiserConfig
    grpo: GrpoConfig
    threads: int
    compute_dtype: ComputeDtype
    version: int


@dataclass(frozen=True)
class Join:
    """Meet the other ranks at a port of this machine."""

    port: int


@dataclass(frozen=True)
class Train:
    """A batch of so many bytes comes through the exchange: compute your share of it."""

    size_bytes: int


@dataclass(frozen=True)
class Apply:
    """Every rank has computed its share: exchange gradients, then update."""

    divisor: float
    """Of the whole batch: what gradients are divided by."""


@dataclass(frozen=True)
class Discard:
    """Some rank could not compute its share: forget the gradients."""


@dataclass(frozen=True)
class Load:
    """Take up a checkpoint."""

    folder: Path


@dataclass(frozen=True)
class Ready:
    """Answer to `RankSpec`: the weights are in memory; and to `Join`: the ranks have met."""


@dataclass(frozen=True)
class Counted:
    """A micro-batch is computed; also a sign of life."""

    index: int
    tally: Tally


@dataclass(frozen=True)
class Computed:
    """Answer to `Train`: the rank's share is computed, or why not."""

    error: Exception | None


@dataclass(frozen=True)
class Holds:
    """Answer to `Apply` and `Load`: what the rank holds now; None if it could not."""

    digests: WeightDigests | None


ToRank = RankSpec | Join | Train | Apply | Discard | Load
FromRank = Ready | Counted | Computed | Holds
