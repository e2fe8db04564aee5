"""Fields of JSON objects of others, whose shape may be another tomorrow: what is not there, or not so, is nothing."""

import json
from collections.abc import Mapping
from typing import cast

from pydantic import JsonValue

JsonObject = Mapping[str, JsonValue]


def object_of(text: str) -> JsonObject | None:
    """The JSON object that a line is, or None."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast(JsonObject, value) if isinstance(value, dict) else None


def part(value: JsonObject, *path: str) -> JsonObject:
    """The object at a path, or an empty one."""
    for name in path:
        inner = value.get(name)
        value = inner if isinstance(inner, dict) else {}
    return value


def parts(value: JsonObject, name: str) -> list[JsonObject]:
    """The objects of a list, or none."""
    found = value.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def string(value: JsonObject, *names: str) -> str:
    """The first of the fields that is a text, or an empty one."""
    for name in names:
        found = value.get(name)
        if isinstance(found, str):
            return found
    return ""


def whole(value: JsonObject, name: str) -> int | None:
    """A number that is not negative, or None."""
    found = value.get(name)
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found < 1e18:
        return None
    return int(found)


def money(value: JsonObject, name: str) -> float | None:
    """An amount that is not negative, or None."""
    found = value.get(name)
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found < 1e12:
        return None
    return float(found)


def as_text(value: JsonValue | None) -> str:
    """A text as it is, blocks of text joined, anything else as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list) and value and all(isinstance(each, dict) and "text" in each for each in value):
        return "\n".join(as_text(cast(JsonObject, each)["text"]) for each in value)
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def as_arguments(value: JsonValue | None) -> dict[str, JsonValue]:
    """Arguments of a call by name; what is no object stands under `value`."""
    if isinstance(value, dict):
        return value
    return {} if value is None else {"value": value}
