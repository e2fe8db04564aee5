"""From a TOML file to a run set's recipe, with errors that name the key, the value and what is allowed."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from stepwell.nearest_names import did_you_mean
from stepwell.ptb.regimes import REGIMES, BrokenRegime, Regime, load_regime, regime
from stepwell.ptb.trials.recipe import RunSetRecipe
from stepwell.recipe.loading import RecipeError, with_settings


def load_run_set(path: Path, settings: Sequence[str] = ()) -> RunSetRecipe:
    """Reads a run set's recipe; what it leaves to the regime is filled in, and its paths are made absolute.

    Args:
        path: TOML file.
        settings: Changes of the form `section.key=value`.

    Raises:
        RecipeError: no such file, no TOML, a key or value that is not allowed, or one that the regime has not.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RecipeError(f"{path} cannot be read: {error}; name a run set's recipe") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RecipeError(f"{path} is no TOML: {error}") from None
    if {"policy", "tasks"} <= table.keys():
        raise RecipeError(f"{path} is the recipe of a training run, not of a run set: stepwell run {path}")
    recipe = resolve_run_set(with_settings(table, settings), source=str(path))
    return _filled(_absolute(recipe, path.resolve().parent))


def resolve_run_set(table: Mapping[str, Any], *, source: str) -> RunSetRecipe:
    """A recipe out of a table, as it is.

    Raises:
        RecipeError: a key, type or value that is not allowed.
    """
    try:
        return RunSetRecipe.model_validate(table)
    except ValidationError as error:
        lines = [_explain(dict(item)) for item in error.errors(include_url=False)]
        raise RecipeError("\n".join([f"{source}: {len(lines)} error(s)", *(f"  {line}" for line in lines)])) from None


def regime_of(recipe: RunSetRecipe) -> Regime:
    """The regime that a recipe names.

    Raises:
        RecipeError: there is none, or its file holds none.
    """
    try:
        return regime(recipe.regime) if recipe.regime in REGIMES else load_regime(Path(recipe.regime))
    except BrokenRegime as error:
        raise RecipeError(f"regime: {error}") from None


def _absolute(recipe: RunSetRecipe, folder: Path) -> RunSetRecipe:
    """Paths from the recipe's folder. Links stay: what they lead to may be moved."""

    def absolute(path: str | None) -> str | None:
        return None if path is None else str(folder / Path(path).expanduser())

    table = recipe.model_dump()
    table["files"] = absolute(table["files"])
    table["image"] = absolute(table["image"])
    if recipe.regime not in REGIMES:
        table["regime"] = absolute(table["regime"])
    for model in table["models"].values():
        model.update(base=absolute(model["base"]), instruct=absolute(model["instruct"]))
    for mount in [*table["mounts"], *(mount for agent in table["agents"] for mount in agent["mounts"])]:
        mount["source"] = absolute(mount["source"])
    if table["judges"] is not None:
        table["judges"]["recorded"] = absolute(table["judges"]["recorded"])
    return RunSetRecipe.model_validate(table)


def _filled(recipe: RunSetRecipe) -> RunSetRecipe:
    """With what the regime says where the recipe says nothing."""
    rules = regime_of(recipe)
    chosen: dict[str, tuple[str, ...]] = {}
    for key, allowed in (
        ("base_models", rules.base_models),
        ("benchmarks", rules.benchmarks),
        ("reference_models", rules.base_models),
        ("reference_benchmarks", rules.benchmarks),
    ):
        chosen[key] = getattr(recipe, key) or allowed
        for name in chosen[key]:
            if name not in allowed:
                hint = did_you_mean(name, allowed)
                raise RecipeError(
                    f"{key}: {rules.name} has no {name!r}; it has {', '.join(allowed)}" + (f"; {hint}" if hint else "")
                )
    filled = recipe.model_copy(update={**chosen, "hours": recipe.hours or rules.hours})
    lacking = [model for model in filled.all_models if model not in recipe.models]
    if lacking:
        raise RecipeError(
            f"models: no folder is named for {', '.join(lacking)}: name it, or leave the model out of base_models and "
            "reference_models"
        )
    if "instruct" in recipe.references and (
        without := [model for model in filled.all_models if recipe.models[model].instruct is None]
    ):
        raise RecipeError(f'references has "instruct", and models names no instruct folder for {", ".join(without)}')
    try:
        filled.cells()
    except ValueError as error:
        raise RecipeError(str(error)) from None
    return filled


def _explain(item: Mapping[str, Any]) -> str:
    location = [str(part) for part in item["loc"]]
    where = ".".join(location) or "recipe"
    if item["type"] == "extra_forbidden":
        names = _keys_at(location[:-1])
        meant = did_you_mean(location[-1], names)
        return f"{where}: unknown key{f'; {meant}' if meant else ''} (allowed: {', '.join(names)})"
    if item["type"] == "missing":
        return f"{where}: missing; it has no default"
    message = str(item["msg"]).removeprefix("Value error, ")
    return f"{where}: {message}" if item["type"] == "value_error" else f"{where} = {item['input']!r}: {message}"


def _keys_at(location: Sequence[str]) -> list[str]:
    """Allowed keys of the section at a location; places in lists and names in tables are passed over."""
    model: type[BaseModel] = RunSetRecipe
    for part in location:
        if part in model.model_fields:
            model = next(iter(_models_in(model.model_fields[part].annotation)), model)
    return sorted(model.model_fields)


def _models_in(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models_in(part)]
