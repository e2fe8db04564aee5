"""The version 0 that is shipped with Stepwell, so that a first run needs no warm-up.

    python -m stepwell.policy.micro.ship FOLDER       makes it again, in about four minutes on a quiet core

In an equal numeric environment (`made_by.json` names it) the weights are the same to the bit.
"""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from stepwell.policy.micro.config import WarmUpConfig

FOLDER = Path(__file__).parent / "version_0"
"""A Hugging Face folder and `made_by.json`."""
MADE_BY = "made_by.json"


class MadeBy(BaseModel):
    """How a version 0 was made."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int
    """Seed of the warm-up."""
    tasks_seed: int
    """Seed of the tasks that it was shown."""
    warm_up: WarmUpConfig
    """Settings."""
    weights: str
    """Digest of the weights."""
    environment: dict[str, Any]
    """Numeric environment."""


def shipped() -> MadeBy:
    """How the shipped version 0 was made."""
    return MadeBy.model_validate_json((FOLDER / MADE_BY).read_text())
