"""Advantages and masks under other settings, over a history that stands."""

import pytest

from stepwell.agent.protocol import StopReason
from stepwell.audit.advantage_changes import NOT_THERE, AdvantageChange, StepChange, compare_batches, largest
from stepwell.audit.counterfactual import COMPUTED, NEEDS_A_MODEL, NotComputable, counterfactual_recipe, differences
from stepwell.audit.recipe import AuditedRecipe
from stepwell.events import RolloutEnded, RolloutGraded
from stepwell.recipe.sections import RunSection
from stepwell.rl.batching import BatchManifest, build_manifest
from stepwell.rl.config import GrpoConfig, PackingConfig
from stepwell.rl.outcomes import rollout_facts
from tests.told import told

GROUP_STD = {"rl.normalise": ("baseline_std", "group_std")}
RECIPE = AuditedRecipe(run=RunSection(max_steps=1, prompts_per_step=1, samples_per_prompt=4))


def batch(scores: list[float], stops: list[StopReason] | None = None, grpo: GrpoConfig = RECIPE.rl) -> BatchManifest:
    """One group."""
    facts = [
        rollout_facts(
            f"rollout/r/0/0/{sample}",
            told(RolloutEnded, reason=(stops or [StopReason.FINISHED] * len(scores))[sample]),
            told(RolloutGraded, score=score),
            None,
            rows=None,
            overlong_filtering=grpo.overlong_filtering,
        )
        for sample, score in enumerate(scores)
    ]
    return build_manifest(step=0, parent_version=0, temperature=1.0, rollouts=facts, grpo=grpo, packing=PackingConfig())


def changed(setting: str, scores: list[float], stops: list[StopReason] | None = None) -> StepChange:
    other = counterfactual_recipe(RECIPE, [setting])
    return compare_batches(batch(scores, stops), batch(scores, stops, other.rl))


def test_without_a_norm_the_raw_advantages_are_left() -> None:
    found = changed("rl.normalise=none", [1.0, 1.0, 0.0, 0.0])
    # The others of a solved one are 1, 0, 0: mean 1/3, and 2/3 remain.
    assert [(change.place, change.other) for change in found.changes] == [
        (f"rollout/0/0/{sample}", pytest.approx(2 / 3 if sample < 2 else -2 / 3)) for sample in range(4)
    ]
    assert found.counts() == {
        "changed": 4,
        "sign_changes": 0,
        "to_zero": 0,
        "from_zero": 0,
        "masked": 0,
        "unmasked": 0,
    }


def test_a_mask_that_is_lifted_changes_its_group_too() -> None:
    stops = [StopReason.CONTEXT, StopReason.FINISHED, StopReason.FINISHED, StopReason.FINISHED]
    found = changed("rl.overlong_filtering=false", [1.0, 0.0, 0.0, 0.0], stops)
    assert found.counts() == {
        "changed": 4,
        "sign_changes": 0,
        "to_zero": 0,
        "from_zero": 3,
        "masked": 0,
        "unmasked": 1,
    }
    assert found.mean_difference == pytest.approx(sum(abs(change.other) for change in found.changes) / 4)


def test_shuffled_rewards_change_signs_within_a_group() -> None:
    found = changed("rl.shuffle_rewards=true", [1.0, 0.0, 0.0, 0.0])
    assert (found.flipped, found.counts()["changed"]) == (2, 2)


def test_what_is_left_out_of_a_batch_is_told_as_that() -> None:
    whole = batch([1.0, 0.0, 0.0])
    smaller = whole.model_copy(update={"samples": whole.samples[1:]})
    change = compare_batches(whole, smaller).changes[0]
    assert (change.other_mask, change.is_masked) == (NOT_THERE, True)
    assert change.words() == "rollout/0/0/0: +1.000 → not in the batch"


def test_changes_of_sign_come_first_then_the_largest() -> None:
    def change(sample: int, before: float, after: float) -> AdvantageChange:
        return AdvantageChange(f"rollout/r/0/0/{sample}", before, after, None, None)

    steps = [StepChange(0, 3, (change(0, 1.0, 9.0),)), StepChange(1, 3, (change(1, 0.1, -0.1), change(2, 0.0, 1.0)))]
    assert [found.place for found in largest(steps, 2)] == ["rollout/0/0/1", "rollout/0/0/0"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["rl.estimator=grpo"], {"rl.baseline": ("leave_one_out", "group_mean"), **GROUP_STD}),
        (["rl.estimator=rloo"], {"rl.normalise": ("baseline_std", "none"), "rl.std_epsilon": (1e-06, None)}),
        (["rl.estimator=grpo", "rl.baseline=leave_one_out"], GROUP_STD),
        (["rl.std_epsilon=1e-3"], {"rl.std_epsilon": (1e-06, 1e-3)}),
    ],
)
def test_settings_say_what_they_change(settings: list[str], said: dict) -> None:
    assert differences(RECIPE, counterfactual_recipe(RECIPE, settings)) == said


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        *(
            (f"{key}=0.5", "acts in the loss, on ratios of the trainer's log-probabilities")
            for key in sorted(NEEDS_A_MODEL)
        ),
        ("optimiser.learning_rate=1", "optimiser.learning_rate changes no advantage and no mask of what is recorded"),
        ("rl.basline=group_mean", "did you mean 'rl.baseline'?"),
        ("rl.estimator=rlooo", "did you mean 'rloo'?"),
        ("rl.baseline=median", "rl.baseline = 'median': Input should be 'leave_one_out' or 'group_mean'"),
        ("rl.std_epsilon=-1", "rl.std_epsilon = -1"),
        ("rl.baseline", "wanted KEY=VALUE"),
        ("rl.baseline=leave_one_out", "has these settings already"),
    ],
)
def test_what_changes_nothing_is_refused_with_the_reason(setting: str, said: str) -> None:
    with pytest.raises(NotComputable) as refused:
        counterfactual_recipe(RECIPE, [setting])
    assert said in str(refused.value)


def test_every_key_of_the_algorithm_is_either_computed_or_needs_a_model() -> None:
    keys = {f"rl.{key}" for key in GrpoConfig.model_fields}
    assert keys == (set(COMPUTED) - {"rl.estimator"}) | NEEDS_A_MODEL
