"""What is stored of a turn and of a rollout's end: the blobs that events name."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue

from stepwell.agent.protocol import Action
from stepwell.events.canonical import canonical_json


class TurnPayload(BaseModel):
    """Tokens and text of one turn. The context of turn `n` is every `delta_ids` and `token_ids` up to it, in order."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    delta_ids: tuple[int, ...]
    """Tokens put before the generated ones: the prompt in turn 0, then what the last action was answered with."""
    token_ids: tuple[int, ...]
    """Generated ids, with the stop token if generation ended by one."""
    logprobs: tuple[float, ...]
    """One a generated token, in nats, as the engine gave it."""
    finish_reason: Literal["stop", "length"]
    """How the generation ended."""
    action: Action
    """What the text asked for."""
    observation: str
    """What the agent was told."""
    finished: bool
    """Whether the action ended the episode."""
    shell: str = ""
    """Digest of what the tools keep outside the work tree after the action: a shell's folder, environment and
    functions. Empty for tools without a shell."""
    segment: int = 0
    """Row of tokens that the turn belongs to, from 0: a turn whose prompt does not extend an earlier one begins a new
    row, with its whole prompt in `delta_ids`. Our own harness has one row."""
    asked: dict[str, JsonValue] = {}
    """What a harness asked for and did not get, as sampling is the recipe's; empty for our own."""

    def blob(self) -> bytes:
        """Stored form; what has its default is left out."""
        return canonical_json(self.model_dump(mode="json", exclude_defaults=True))


@dataclass(frozen=True)
class RecordedTurn:
    """A turn with what its event says."""

    payload: TurnPayload
    """Tokens and text."""
    tree: str
    """Digest of the work tree after the action."""
    seconds: float
    """Time that it took, generation and action: the agent's clock is their sum."""


def changed_files_blob(changed: Mapping[str, bytes | None]) -> bytes:
    """Stored form of the files that differ from the task's: path to base64, null for a removed file."""
    return canonical_json(
        {path: None if data is None else base64.b64encode(data).decode() for path, data in changed.items()}
    )


def parse_changed_files(blob: bytes) -> dict[str, bytes | None]:
    """The files of a stored blob."""

    raw: dict[str, str | None] = json.loads(blob)
    return {path: None if data is None else base64.b64decode(data) for path, data in raw.items()}
