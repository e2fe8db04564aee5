"""From a TOML file and `--set a.b=c` to a recipe, with errors that name the key, the value and what is allowed."""

import copy
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from stepwell.nearest_names import did_you_mean
from stepwell.recipe.recipe import Recipe


class RecipeError(ValueError):
    """A recipe that cannot be run; the message says which key, what was found and what is allowed."""


def load_recipe(path: Path, settings: Sequence[str] = ()) -> Recipe:
    """Reads a recipe and applies settings of the form `section.key=value` (value in TOML; bare words are strings).

    Raises:
        RecipeError: no such file, no TOML, or a key, type or value that is not allowed.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        known = ", ".join(sorted(other.name for other in path.parent.glob("*.toml"))) or "no recipe at all"
        raise RecipeError(f"no recipe {path}: its folder holds {known}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RecipeError(f"{path} is no TOML: {error}") from None
    if {"regime", "agents"} <= table.keys():
        raise RecipeError(f"{path} is the recipe of a run set, not of a training run: stepwell ptb run {path}")
    return resolve(with_settings(table, settings), source=str(path))


def with_settings(table: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """A recipe's table with settings of the form `section.key=value` (value in TOML; bare words are strings).

    Raises:
        RecipeError: one has no such form.
    """
    changed = copy.deepcopy(dict(table))
    for setting in settings:
        _apply(changed, setting)
    return changed


def resolve(table: Mapping[str, Any], *, source: str) -> Recipe:
    """A recipe out of a table.

    Raises:
        RecipeError: a key, type or value that is not allowed.
    """
    try:
        return Recipe.model_validate(table)
    except ValidationError as error:
        lines = [_explain(dict(item)) for item in error.errors(include_url=False)]
        raise RecipeError("\n".join([f"{source}: {len(lines)} error(s)", *(f"  {line}" for line in lines)])) from None


def _apply(table: dict[str, Any], setting: str) -> None:
    key, equals, text = setting.partition("=")
    if not equals or not key.strip():
        raise RecipeError(f"--set {setting}: wanted section.key=value, for example --set run.max_steps=2")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    *folders, last = key.strip().split(".")
    inner = table
    for folder in folders:
        step = inner.setdefault(folder, {})
        if not isinstance(step, dict):
            raise RecipeError(f"--set {setting}: {folder} is a value, not a section")
        inner = step
    inner[last] = value


def _explain(item: Mapping[str, Any]) -> str:
    location = [str(part) for part in item["loc"]]
    where = ".".join(part for place, part in enumerate(location) if not _is_tag(location, place)) or "recipe"
    if item["type"] == "extra_forbidden":
        names = _keys_at(location[:-1])
        meant = did_you_mean(location[-1], names)
        hint = f"; {meant}" if meant else ""
        return f"{where}: unknown key{hint} (allowed: {', '.join(names)})"
    if item["type"] == "missing":
        return f"{where}: missing; it has no default"
    message = str(item["msg"]).removeprefix("Value error, ")
    if item["type"] == "value_error":
        return message if where == "recipe" else f"{where}: {message}"
    return f"{where} = {item['input']!r}: {message}"


def _keys_at(location: Sequence[str]) -> list[str]:
    """Allowed keys of the section at a location."""
    models: list[type[BaseModel]] = [Recipe]
    for place, part in enumerate(location):
        if _is_tag(location, place):
            models = [model for model in models if part in _tags_of(model)]
            continue
        models = [
            inner
            for model in models
            if part in model.model_fields
            for inner in _models_in(model.model_fields[part].annotation)
        ]
    return sorted({name for model in models for name in model.model_fields})


def _is_tag(location: Sequence[str], place: int) -> bool:
    """Whether a part of pydantic's location is the tag of a tagged union, which is no key of the recipe."""
    return place == 1 and location[0] in _TAGGED and location[1] in _TAGGED[location[0]]


def _models_in(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) is Union or get_args(annotation):
        return [model for part in get_args(annotation) for model in _models_in(part)]
    return []


def _tags_of(model: type[BaseModel]) -> tuple[str, ...]:
    for name in ("kind", "source"):
        if name in model.model_fields:
            return tuple(str(arg) for arg in get_args(model.model_fields[name].annotation))
    return ()


_TAGGED = {
    field: tuple(tag for model in _models_in(Recipe.model_fields[field].annotation) for tag in _tags_of(model))
    for field in ("policy", "tasks")
}
"""Fields of a recipe that are tagged unions, with their tags."""
