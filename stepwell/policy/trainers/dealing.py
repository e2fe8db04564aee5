"""Which rank computes which micro-batch: a function of the manifest alone."""

from stepwell.rl.batching import BatchManifest, MicroBatch

_BACKWARD = 2
"""What a backward pass costs, in forward passes."""


def deal(manifest: BatchManifest, ranks: int) -> tuple[tuple[int, ...], ...]:
    """Indices of micro-batches by rank, each rank's in the manifest's order: the costliest first, each to the rank with
    the least to do, of several to the lowest.

    Raises:
        ValueError: fewer than one rank.
    """
    if ranks < 1:
        raise ValueError(f"{ranks} ranks: at least 1")
    costs = [_cost(micro_batch) for micro_batch in manifest.micro_batches]
    dealt: list[list[int]] = [[] for _ in range(ranks)]
    loads = [0] * ranks
    for index in sorted(range(len(costs)), key=lambda index: (-costs[index], index)):
        rank = loads.index(min(loads))
        dealt[rank].append(index)
        loads[rank] += costs[index]
    return tuple(tuple(sorted(indices)) for indices in dealt)


def _cost(micro_batch: MicroBatch) -> int:
    positions = len(micro_batch.samples) * micro_batch.length
    return positions * (1 + _BACKWARD) if micro_batch.train else positions
