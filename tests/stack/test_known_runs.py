"""Which run a recipe finds again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from activities.stores import Stores
from db.blobs import BlobStore
from db.ledger import Ledger
from stepwell.events import RunCreated
from stepwell.events.canonical import digest_of_json
from stepwell.events.streams import run_stream
from stepwell.recipe.loading import RecipeError, load_recipe
from stepwell.recipe.recipe import Recipe
from tests.stack.tiny_run import RECIPE
from workers.runs import find_or_create


@pytest.fixture
def recipe(tmp_path: Path, fresh: Callable[[], str]) -> Recipe:
    """A recipe that no other test has."""
    (tmp_path / "tiny.toml").write_text(RECIPE)
    return load_recipe(tmp_path / "tiny.toml", [f"name={fresh()}"])


async def created(stores: Stores, name: str, recipe: dict[str, Any]) -> None:
    """The first event of a run."""
    event = RunCreated(recipe=recipe, recipe_digest=digest_of_json(recipe), task_set="0" * 64)
    await stores.ledger.append(run_stream(name), [event], expected_seq=0, actor=stores.actor)


def of_an_earlier_version(recipe: Recipe) -> dict[str, Any]:
    """As it was resolved before some of its keys were there."""
    told = recipe.model_dump(mode="json")
    del told["cluster"], told["validation"]["schedule"], told["validation"]["mode"], told["rl"]["loss"]
    return told


async def test_a_run_from_before_an_upgrade_is_found_by_its_recipe_and_by_its_name(
    ledger: Ledger, blobs: BlobStore, recipe: Recipe
) -> None:
    stores, name = Stores(ledger, blobs, actor="control:test/1"), f"{recipe.name}-1"
    await created(stores, name, of_an_earlier_version(recipe))
    assert (await find_or_create(stores, recipe, None)).name == name
    assert (await find_or_create(stores, recipe, name)).name == name


async def test_a_run_whose_recipe_is_not_read_any_more_is_no_run_of_this_recipe(
    ledger: Ledger, blobs: BlobStore, recipe: Recipe
) -> None:
    stores, name = Stores(ledger, blobs, actor="control:test/1"), f"{recipe.name}-1"
    await created(stores, name, recipe.model_dump(mode="json") | {"gone": 1})
    with pytest.raises(RecipeError, match="exists with another recipe"):
        await find_or_create(stores, recipe, name)
