"""The published baselines."""

import tomllib
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict


class Baselines(BaseModel):
    """Points, 0 to 100, by model and benchmark."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base: dict[str, dict[str, float]]
    """Of base models, asked without examples."""
    instruct: dict[str, dict[str, float]]
    """Of their publishers' own instruct models."""


@cache
def published_baselines() -> Baselines:
    """Those of v1.0."""
    return Baselines.model_validate(
        tomllib.loads(Path(__file__).with_name("baselines.toml").read_text(encoding="utf-8"))
    )
