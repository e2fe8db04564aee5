"""Micro-batches are dealt to ranks by the manifest alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.policy.trainers.dealing import deal
from stepwell.rl.batching import BatchManifest, MicroBatch

micro_batches = st.builds(
    lambda rows, length, train: MicroBatch(samples=tuple(range(rows)), length=length, train=train),
    st.integers(1, 9),
    st.integers(1, 300),
    st.booleans(),
)


def manifest_of(cut: list[MicroBatch]) -> BatchManifest:
    return BatchManifest(step=0, parent_version=0, version=1, temperature=1.0, samples=(), micro_batches=tuple(cut))


def cost(micro_batch: MicroBatch) -> int:
    return len(micro_batch.samples) * micro_batch.length * (3 if micro_batch.train else 1)


@given(st.lists(micro_batches, max_size=20), st.integers(1, 5))
def test_every_micro_batch_goes_to_one_rank_in_the_manifests_order(cut: list[MicroBatch], ranks: int) -> None:
    dealt = deal(manifest_of(cut), ranks)
    assert len(dealt) == ranks
    assert sorted(index for share in dealt for index in share) == list(range(len(cut)))
    assert all(list(share) == sorted(share) for share in dealt)


@given(st.lists(micro_batches, max_size=20), st.integers(1, 5))
def test_no_rank_has_more_than_another_by_more_than_one_micro_batch(cut: list[MicroBatch], ranks: int) -> None:
    loads = [sum(cost(cut[index]) for index in share) for share in deal(manifest_of(cut), ranks)]
    assert max(loads) - min(loads) <= max(map(cost, cut), default=0)


def test_one_rank_has_all() -> None:
    cut = [MicroBatch(samples=(0,), length=8, train=True), MicroBatch(samples=(1,), length=16, train=False)]
    assert deal(manifest_of(cut), 1) == ((0, 1),)


def test_no_rank_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        deal(manifest_of([]), 0)
