"""Recipes: what is refused, and how it is said."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from stepwell.ptb.trials import RunSetRecipe, load_run_set
from stepwell.recipe.loading import RecipeError, load_recipe
from stepwell.recipe.recipe import Recipe
from stepwell.recipe.sections import AgentSection
from stepwell.recipe.validating import ValidationSection

RECIPES = Path(__file__).parents[2] / "recipes"
MICRO = RECIPES / "micro.toml"
RUN_SET = RECIPES / "ptb-rehearsal.toml"


@pytest.mark.parametrize("path", sorted({*RECIPES.glob("*.toml")} - {RUN_SET}), ids=lambda path: path.stem)
def test_shipped_recipe_resolves_and_resolves_again_to_itself(path: Path) -> None:
    recipe = load_recipe(path)
    assert Recipe.model_validate(recipe.model_dump(mode="json")) == recipe
    assert recipe.name == path.stem


def test_a_shipped_run_set_resolves_and_each_kind_of_recipe_says_which_command_takes_it() -> None:
    run_set = load_run_set(RUN_SET)
    assert RunSetRecipe.model_validate(run_set.model_dump(mode="json")) == run_set
    assert (run_set.name, len(run_set.cells())) == (RUN_SET.stem, 42)
    with pytest.raises(RecipeError, match=f"not of a training run: stepwell ptb run {RUN_SET}"):
        load_recipe(RUN_SET)
    with pytest.raises(RecipeError, match=f"not of a run set: stepwell run {MICRO}"):
        load_run_set(MICRO)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("run.max_step=2", ["run.max_step: unknown key", "did you mean 'max_steps'?"]),
        ("run.max_steps=0", ["run.max_steps = 0", "greater than or equal to 1"]),
        ("run.max_steps=many", ["run.max_steps = 'many'", "integer"]),
        ("nonsense=1", ["nonsense: unknown key", "allowed:"]),
        ("policy.kind=gpt", ["policy", "'gpt'", "'micro'"]),
        ("agent.tools=codeact", ["agent.tools", "codeact", "micro policy"]),
        ("agent.max_context_tokens=4096", ["agent.max_context_tokens", "engine.max_context"]),
        ("engine.kv_cache_mib=64", ["kv_cache_mib", "would do nothing"]),
        ("rl.importance=seq_mask_tis", ["importance", "correct twice"]),
        ("agent.stop_when_stuck=true", ["stop_when_stuck", "would do nothing", "codeact"]),
        ("policy.warm_up.step=1", ["policy.warm_up.step: unknown key", "did you mean 'steps'?"]),
        ("run.max_steps", ["wanted section.key=value"]),
        ("run.seed.deeper=1", ["seed is a value, not a section"]),
    ],
)
def test_bad_setting_names_key_value_and_what_is_allowed(setting: str, said: list[str]) -> None:
    with pytest.raises(RecipeError) as refused:
        load_recipe(MICRO, [setting])
    for part in said:
        assert part in str(refused.value)


def test_several_errors_are_told_at_once() -> None:
    with pytest.raises(RecipeError, match=r"2 error\(s\)"):
        load_recipe(MICRO, ["run.max_steps=0", "agent.max_turns=0"])


def test_missing_recipe_names_those_that_are_there() -> None:
    with pytest.raises(RecipeError, match=r"micro\.toml"):
        load_recipe(RECIPES / "mikro.toml")


def test_broken_toml_says_where(tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    path.write_text("[run\n")
    with pytest.raises(RecipeError, match="line 1"):
        load_recipe(path)


def test_settings_change_the_digest_and_only_they_do() -> None:
    assert load_recipe(MICRO).digest == load_recipe(MICRO, ["run.seed=0"]).digest
    assert load_recipe(MICRO).digest != load_recipe(MICRO, ["run.seed=1"]).digest


def test_plan_validates_the_versions_that_the_recipe_names() -> None:
    schedule = load_recipe(MICRO, ["validation.every=4", "validation.first=6"]).plan().validation
    assert [version for version in range(17) if schedule.due(version)] == [0, 8, 12, 16]


def recipe_of(**validation: object) -> Recipe:
    raw = load_recipe(MICRO, ["run.prompts_per_step=16"]).model_dump(mode="json", exclude={"validation"})
    return Recipe.model_validate({**raw, "validation": {"tasks": 256, "target": 0.69, **validation}})


def test_the_benchmarks_schedule_evaluates_every_step_from_its_first_on() -> None:
    schedule = recipe_of(schedule="mlperf").plan().validation
    assert [version for version in range(21) if schedule.due(version)] == [18, 19, 20]
    assert (schedule.mode, schedule.target) == ("inline", 0.69)


@pytest.mark.parametrize("key", ["every", "first", "initial"])
def test_the_benchmarks_schedule_refuses_keys_that_it_fixes(key: str) -> None:
    with pytest.raises(ValidationError, match=f'{key} would do nothing: schedule = "mlperf" fixes'):
        recipe_of(schedule="mlperf", **{key: 1})


def test_the_benchmarks_schedule_needs_a_run_that_reaches_it() -> None:
    raw = recipe_of(schedule="mlperf").model_dump(mode="json")
    raw["run"]["max_steps"] = 17
    with pytest.raises(ValidationError, match=r"validates version 18 first, but run\.max_steps is 17"):
        Recipe.model_validate(raw)


@pytest.mark.parametrize("given", [{}, {"every": 2}, {"schedule": "mlperf", "mode": "offline"}])
def test_a_resolved_section_of_validation_resolves_to_itself(given: dict[str, object]) -> None:
    section = recipe_of(**given).validation
    assert ValidationSection.model_validate(section.model_dump(mode="json")) == section


def test_a_plan_is_told_of_the_offline_rule_only_where_it_holds() -> None:
    assert "mode" not in recipe_of().plan().validation.model_dump()
    assert recipe_of(mode="offline").plan().validation.model_dump()["mode"] == "offline"


def test_unknown_package_names_those_that_are_known() -> None:
    with pytest.raises(RecipeError, match=r"no package 'nix'.*toolz"):
        load_recipe(RECIPES / "smollm2.toml", ['tasks.packages=["nix"]'])


def test_settings_of_a_warm_up_that_is_not_made_are_refused() -> None:
    with pytest.raises(RecipeError, match=r"policy\.warm_up differs.*would do nothing"):
        load_recipe(MICRO, ["policy.warm_up.steps=3"])


def test_the_agent_of_the_benchmark_is_the_default() -> None:
    agent = AgentSection(tools="codeact", max_turn_tokens=1)
    assert (agent.chat, agent.command_timeout_s, agent.observation_chars, agent.stop_when_stuck) == (
        *("chatml", 60.0, 8000),
        True,
    )
    assert agent.functions == ("execute_bash", "str_replace_editor", "think", "finish")
    assert (agent.prompt, agent.max_turns, agent.max_context_tokens) == ("schemas", 30, 65_536)
