"""A run set's recipe: what it resolves to, what it refuses, and the matrix of its trials."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.ptb.trials import Places, RunSetRecipe, load_run_set, matrix, slug
from stepwell.ptb.trials.cells import TrialCell
from stepwell.recipe.loading import RecipeError

RECIPE = """
name = "small"
regime = "v1.2"
files = "files.toml"
base_models = ["Qwen/Qwen3-1.7B-Base"]
benchmarks = ["gsm8k", "humaneval"]
reference_models = ["Qwen/Qwen3-1.7B-Base"]
reference_benchmarks = ["gsm8k", "humaneval"]
repetitions = 2

[models."Qwen/Qwen3-1.7B-Base"]
base = "qwen"

[[agents]]
name = "honest"
scaffold = "shell"
model = "none"
command = ["python", "agent.py"]
"""


def loaded(folder: Path, text: str = RECIPE, *settings: str) -> RunSetRecipe:
    """The recipe of a text."""
    path = folder / "small.toml"
    path.write_text(text)
    return load_run_set(path, settings)


def test_regime_fills_in_and_paths_are_from_the_recipe(tmp_path: Path) -> None:
    recipe = loaded(tmp_path)
    assert recipe.hours == 10
    assert recipe.files == str(tmp_path / "files.toml")
    assert recipe.models["Qwen/Qwen3-1.7B-Base"].base == str(tmp_path / "qwen")
    assert loaded(tmp_path, RECIPE, "hours=1").digest != recipe.digest


def test_resolved_recipe_is_read_back_from_its_own_json(tmp_path: Path) -> None:
    recipe = loaded(tmp_path)
    assert RunSetRecipe.model_validate_json(recipe.model_dump_json()) == recipe
    assert RunSetRecipe.model_validate_json(recipe.model_dump_json()).digest == recipe.digest


def test_references_come_first_and_then_whole_repetitions(tmp_path: Path) -> None:
    names = [cell.name for cell in loaded(tmp_path).cells()]
    model = "qwen-qwen3-1-7b-base"
    assert names == [
        f"base.{model}.gsm8k.0",
        f"base.{model}.humaneval.0",
        *(f"honest.{model}.{benchmark}.{number}" for number in (0, 1) for benchmark in ("gsm8k", "humaneval")),
    ]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (("repetition=2",), ("repetition: unknown key", "did you mean", "repetitions")),
        (("repetitions=0",), ("repetitions = 0", "greater than or equal to 1")),
        (('benchmarks=["gsm8"]',), ("benchmarks: v1.2 has no 'gsm8'", "gsm8k")),
        (('base_models=["Qwen/Qwen3-4B-Base"]',), ("models: no folder is named for Qwen/Qwen3-4B-Base",)),
        (('references=["instruct"]',), ("names no instruct folder",)),
        (("network.mode=allow",), ("without a rule in `allow` reaches no host",)),
        (("judges.address=http://127.0.0.1:1/v1",), ("address and model go together",)),
        (("regime=v9",), ("regime",)),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(
    tmp_path: Path, settings: tuple[str, ...], words: tuple[str, ...]
) -> None:
    with pytest.raises(RecipeError) as refused:
        loaded(tmp_path, RECIPE, *settings)
    for word in words:
        assert word in str(refused.value)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (('name = "honest"', 'name = "base"'), "none base or instruct"),
        (('command = ["python", "agent.py"]', ""), "wanted a command"),
        (('scaffold = "shell"', 'scaffold = "codex_cli"'), "wanted none: its command is declared"),
    ],
)
def test_agents_that_cannot_be_are_refused(tmp_path: Path, changed: tuple[str, str], words: str) -> None:
    with pytest.raises(RecipeError, match=words):
        loaded(tmp_path, RECIPE.replace(*changed))


def test_two_models_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match=r"would both be called a\.x-y\.b\.0"):
        matrix(["a"], Places(["X/y", "x.Y"], ["b"]), 1)


@given(st.text(min_size=1))
def test_a_slug_is_a_part_of_a_stream_s_name(name: str) -> None:
    assert set(slug(name)) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


def test_agents_share_the_seed_of_a_place_and_repetitions_do_not() -> None:
    first = TrialCell("agent", "a", "m", "b", 0)
    assert first.seed(7) == TrialCell("agent", "b", "m", "b", 0).seed(7)
    others = [TrialCell("agent", "a", "m", "b", 1), TrialCell("agent", "a", "n", "b", 0)]
    assert len({first.seed(7), first.seed(8), *(other.seed(7) for other in others)}) == 4
