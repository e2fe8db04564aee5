"""Masks, rows, and the manifest."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.agent.protocol import StopReason
from stepwell.rl.advantages import group_advantages
from stepwell.rl.batching import BatchManifest, RolloutFacts, build_manifest
from stepwell.rl.config import GrpoConfig, PackingConfig
from stepwell.rl.masks import MaskReason, mask_scored
from stepwell.rl.samples import MissingLogprob, TrainSample


def facts(
    prompt: int, sample: int, reward: float | None, tokens: int = 20, mask: MaskReason | None = None
) -> RolloutFacts:
    return RolloutFacts(
        stream=f"rollout/r/0/{prompt}/{sample}",
        prompt=prompt,
        sample=sample,
        turns=2,
        tokens=tokens,
        generated_tokens=5 if tokens else 0,
        content="00" if tokens else "",
        reward=reward,
        mask=mask,
    )


def manifest(rollouts: list[RolloutFacts], packing: PackingConfig | None = None) -> BatchManifest:
    return build_manifest(
        step=4,
        parent_version=4,
        temperature=1.0,
        rollouts=rollouts,
        grpo=GrpoConfig(),
        packing=packing or PackingConfig(),
    )


def test_shuffled_rewards_change_advantages_and_nothing_else() -> None:
    rewards = [1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    rollouts = [facts(0, sample, reward) for sample, reward in enumerate(rewards)]
    rollouts.append(facts(0, 8, None, tokens=0, mask=MaskReason.INFRA))

    def built(seed: int) -> BatchManifest:
        control = GrpoConfig(shuffle_rewards=True)
        return build_manifest(
            step=4,
            parent_version=4,
            temperature=1.0,
            rollouts=rollouts,
            grpo=control,
            packing=PackingConfig(),
            run_seed=seed,
        )

    true = [sample.advantage for sample in manifest(rollouts).samples]
    dealt = [[sample.advantage for sample in built(seed).samples] for seed in range(5)]
    assert built(1) == built(1)
    assert all(sorted(advantages) == pytest.approx(sorted(true)) for advantages in dealt)
    assert any(advantages != pytest.approx(true) for advantages in dealt)
    assert all(advantages[8] == 0.0 for advantages in dealt)
    assert [sample.reward for sample in built(1).samples] == [*rewards, None]


rollout_lists = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 6), st.sampled_from([0.0, 1.0]), st.integers(8, 300), st.booleans()),
    min_size=1,
    max_size=24,
    unique_by=lambda entry: entry[:2],
).map(lambda entries: [facts(p, s, r, n, MaskReason.CONTEXT if m else None) for p, s, r, n, m in entries])


@pytest.mark.parametrize(
    ("stop", "reward", "tokens", "timed_out", "filtering", "reason"),
    [
        (StopReason.FINISHED, 1.0, 9, False, True, None),
        (StopReason.FINISHED, 1.0, 0, False, True, MaskReason.NO_TOKENS),
        (StopReason.FINISHED, 0.0, 9, True, False, MaskReason.GRADING_TIMEOUT),
        (StopReason.CONTEXT, 0.0, 9, False, True, MaskReason.CONTEXT),
        (StopReason.CONTEXT, 0.0, 9, False, False, None),
        (StopReason.WALL_CLOCK, 1.0, 9, False, True, MaskReason.WALL_CLOCK),
        (StopReason.TURNS, 1.0, 9, False, True, MaskReason.SOLVED_AT_TURN_LIMIT),
        (StopReason.TURNS, 0.0, 9, False, True, None),
    ],
)
def test_mask_has_a_named_cause(
    stop: StopReason, reward: float, tokens: int, timed_out: bool, filtering: bool, reason: MaskReason | None
) -> None:
    found = mask_scored(
        stop,
        reward,
        generated_tokens=tokens,
        has_row=True,
        grading_timed_out=timed_out,
        overlong_filtering=filtering,
    )
    assert found is reason


def test_a_rollout_of_several_rows_is_not_trained_as_one() -> None:
    found = mask_scored(
        StopReason.FINISHED, 1.0, generated_tokens=9, has_row=False, grading_timed_out=False, overlong_filtering=False
    )
    assert found is MaskReason.ROWS


@pytest.mark.parametrize("bad", [float("nan"), float("-inf"), float("inf"), 0.5])
def test_row_with_an_unusable_logprob_is_refused(bad: float) -> None:
    sample = TrainSample(token_ids=(1, 2, 3), generated=(False, True, True), logprobs=(-0.5, bad))
    with pytest.raises(MissingLogprob, match="generated token 1"):
        sample.content_digest()


def test_row_with_a_missing_logprob_is_refused() -> None:
    with pytest.raises(MissingLogprob, match="1 log-probabilities for 2"):
        TrainSample(token_ids=(1, 2, 3), generated=(False, True, True), logprobs=(-0.5,)).check()


def test_row_that_starts_with_a_generated_token_is_refused() -> None:
    with pytest.raises(ValueError, match="first token"):
        TrainSample(token_ids=(1, 2), generated=(True, True), logprobs=(-1.0, -1.0)).check()


@pytest.mark.parametrize(
    "change",
    [
        {"token_ids": (1, 2, 4, 4)},
        {"generated": (False, True, False, True)},
        {"logprobs": (-0.5, -0.25)},
    ],
)
def test_content_digest_covers_ids_mask_and_logprobs(change: dict[str, tuple[float, ...]]) -> None:
    sample = TrainSample(token_ids=(1, 2, 3, 4), generated=(False, True, True, False), logprobs=(-0.5, -0.5))
    assert sample.model_copy(update=change).content_digest() != sample.content_digest()


@given(rollouts=rollout_lists, seed=st.integers())
def test_manifest_bytes_do_not_depend_on_the_order_of_arrival(rollouts: list[RolloutFacts], seed: int) -> None:
    shuffled = rollouts[:]
    random.Random(seed).shuffle(shuffled)
    assert manifest(rollouts).canonical_bytes() == manifest(shuffled).canonical_bytes()


@given(rollouts=rollout_lists)
def test_manifest_survives_its_canonical_bytes(rollouts: list[RolloutFacts]) -> None:
    built = manifest(rollouts)
    assert BatchManifest.model_validate_json(built.canonical_bytes()) == built
    assert json.loads(built.canonical_bytes())["version"] == 5


@given(rollouts=rollout_lists, budget=st.integers(1, 2000), multiple=st.sampled_from([1, 8, 32]))
def test_every_row_is_packed_once_within_the_budget(rollouts: list[RolloutFacts], budget: int, multiple: int) -> None:
    built = manifest(rollouts, PackingConfig(micro_batch_tokens=budget, pad_multiple=multiple))
    packed = [index for batch in built.micro_batches for index in batch.samples]
    assert sorted(packed) == list(range(len(rollouts)))
    for batch in built.micro_batches:
        lengths = [built.samples[index].tokens for index in batch.samples]
        assert batch.length % multiple == 0
        assert max(lengths) <= batch.length < max(lengths) + multiple
        assert len(lengths) == 1 or len(lengths) * batch.length <= budget


@given(rollouts=rollout_lists)
def test_only_rows_with_a_part_in_the_gradient_train(rollouts: list[RolloutFacts]) -> None:
    built = manifest(rollouts)
    for batch in built.micro_batches:
        for index in batch.samples:
            sample = built.samples[index]
            assert batch.train == (sample.mask is None and sample.advantage != 0.0)


def test_masked_and_failed_rollouts_have_no_vote() -> None:
    built = manifest([facts(0, 0, 1.0), facts(0, 1, 1.0, mask=MaskReason.CONTEXT), facts(0, 2, 0.0), facts(0, 3, 0.0)])
    wanted = group_advantages([1.0, None, 0.0, 0.0], GrpoConfig())
    assert [sample.advantage for sample in built.samples] == [advantage or 0.0 for advantage in wanted]
    failed = manifest([facts(0, 0, 1.0), facts(0, 1, None, tokens=0, mask=MaskReason.INFRA), facts(0, 2, 0.0)])
    assert [index for batch in failed.micro_batches for index in batch.samples] == [0, 2]
    assert failed.mask_counts() == {MaskReason.INFRA: 1}


@pytest.mark.parametrize(
    ("rollouts", "reason"),
    [
        ([facts(0, 0, 1.0), facts(0, 0, 0.0)], "twice"),
        ([facts(0, 0, None)], "neither a score nor a cause"),
        ([facts(0, 0, 1.0, tokens=0)], "no row of tokens"),
    ],
)
def test_contradictory_rollouts_are_refused(rollouts: list[RolloutFacts], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        manifest(rollouts)
