"""Seeds of samples: each its own, or all samples of a pass share their noise and a model collapses with them."""

import hashlib


def sample_seed(run_seed: int, sample: str, *, epoch: int = 0, call: int = 0) -> int:
    """Seed of one generation, 0 to 2^31 - 1: the first four bytes, big-endian, of SHA-256 over
    `run_seed:sample:epoch:call`, without the sign bit. As the published system derives it since its review.

    Args:
        run_seed: Of the pass over the benchmark.
        sample: Id of the item.
        epoch: Number of the pass over the same item under the same seed.
        call: Number of the generation within the sample; retries after an error keep it.
    """
    digest = hashlib.sha256(f"{run_seed}:{sample}:{epoch}:{call}".encode()).digest()
    return int.from_bytes(digest[:4], "big") & 0x7FFFFFFF
