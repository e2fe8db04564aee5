"""DAPO's soft overlong punishment: its formula, and where it is taken off."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.rl.batching import ManifestSample, RolloutFacts, build_manifest
from stepwell.rl.config import GrpoConfig, PackingConfig
from stepwell.rl.masks import MaskReason
from stepwell.rl.overlong import shaped_reward

SHAPED = GrpoConfig(overlong_buffer_length=4, max_response_length=10, baseline="group_mean", normalise="none")


def batch(
    lengths: list[int], rewards: list[float], masks: dict[int, MaskReason], grpo: GrpoConfig
) -> list[ManifestSample]:
    facts = [
        RolloutFacts(
            stream=f"rollout/r/0/0/{sample}",
            prompt=0,
            sample=sample,
            turns=1,
            tokens=length + 1,
            generated_tokens=length,
            content=f"content {sample}",
            reward=reward,
            mask=masks.get(sample),
        )
        for sample, (length, reward) in enumerate(zip(lengths, rewards, strict=True))
    ]
    built = build_manifest(
        step=0, parent_version=0, temperature=1.0, rollouts=facts, grpo=grpo, packing=PackingConfig()
    )
    return list(built.samples)


@given(
    generated=st.integers(1, 200),
    limit=st.integers(1, 100),
    share=st.floats(0, 1),
    penalty=st.floats(0.01, 4),
    reward=st.sampled_from([-1.0, 0.0, 0.5, 1.0]),
)
def test_punishment_rises_over_the_buffer_to_the_whole(
    generated: int, limit: int, share: float, penalty: float, reward: float
) -> None:
    buffer = max(1, round(share * limit))
    config = GrpoConfig(overlong_buffer_length=buffer, overlong_buffer_penalty=penalty, max_response_length=limit)
    wanted = reward + np.interp(generated, [limit - buffer, limit], [0.0, -penalty])
    assert shaped_reward(reward, generated, config) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize(("generated", "punished"), [(6, 0.0), (7, 0.25), (9, 0.75), (10, 1.0), (11, 1.0), (99, 1.0)])
def test_punishment_is_one_unless_another_is_given(generated: int, punished: float) -> None:
    assert shaped_reward(1.0, generated, SHAPED) == 1.0 - punished
    assert shaped_reward(1.0, generated, GrpoConfig()) == 1.0


def test_advantages_are_of_punished_rewards_and_the_recorded_ones_stay() -> None:
    samples = batch([6, 8, 10, 12], [1.0, 1.0, 1.0, 0.0], {}, SHAPED)
    assert [sample.reward for sample in samples] == [1.0, 1.0, 1.0, 0.0]
    assert [sample.advantage for sample in samples] == [1.0 - 0.125, 0.5 - 0.125, -0.125, -1.0 - 0.125]


def test_a_masked_rollout_has_no_vote_however_long_it_is() -> None:
    masks = {2: MaskReason.CONTEXT}
    assert [sample.advantage for sample in batch([6, 8, 10], [1.0, 1.0, 0.0], masks, SHAPED)] == [0.25, -0.25, 0.0]


def test_without_a_buffer_the_batch_is_what_it_was() -> None:
    plain = GrpoConfig(baseline="group_mean", normalise="none")
    assert [sample.advantage for sample in batch([6, 99], [1.0, 0.0], {}, plain)] == [0.5, -0.5]
