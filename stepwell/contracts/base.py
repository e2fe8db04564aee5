"""What all messages have in common."""

from pydantic import BaseModel, ConfigDict


class Contract(BaseModel):
    """A message: frozen, and strict about its keys, so that a typo is an error on either side."""

    model_config = ConfigDict(frozen=True, extra="forbid")
