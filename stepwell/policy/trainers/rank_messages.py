"""What rank 0 tells the other ranks, and what they answer. All are small: a pipe's buffer holds them, so that telling a
rank that is stopped does not block."""

from collections.abc import Mapping
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
    freeze_router: bool
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
    version: int = 0
    """Its version, where the rank does not read it there."""


@dataclass(frozen=True)
class Digest:
    """Put together the digests of what all ranks hold parts of."""


@dataclass(frozen=True)
class Export:
    """Write the version as a Hugging Face folder."""

    folder: Path


@dataclass(frozen=True)
class Save:
    """Write a checkpoint."""

    folder: Path
    digests: WeightDigests


@dataclass(frozen=True)
class Probe:
    """Score some tokens."""

    token_ids: tuple[int, ...]


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
    """Answer to `Train`, `Export` and `Save`: the rank's share is done, or why not."""

    error: Exception | None


@dataclass(frozen=True)
class Holds:
    """Answer to `Apply` and `Load`: what the rank holds now; None if it could not. To `Digest`: what all hold together;
    None from a rank that was not asked for it."""

    digests: WeightDigests | None


@dataclass(frozen=True)
class Updated:
    """Answer to `Apply` and `Load` where ranks hold parts: what this one holds now."""

    error: Exception | None
    """Why nothing was applied."""
    norm: float
    """Global norm of the gradients; 0 after `Load`."""
    learning_rate: float
    """Of the step; 0 after `Load`."""
    parts: Mapping[str, str]
    """Digest of what the rank holds, by how it is cut among ranks."""


@dataclass(frozen=True)
class Scored:
    """Answer to `Probe`: log-probabilities; empty from a rank that was not asked for them."""

    logprobs: list[float]


ToRank = RankSpec | Join | Train | Apply | Discard | Load | Digest | Export | Save | Probe
Answer = Ready | Computed | Holds | Updated | Scored
"""What a rank says once to one message."""
FromRank = Counted | Answer
