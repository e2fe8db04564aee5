"""Chat templates, chosen by the trial's own metadata."""

import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from stepwell.events.canonical import digest_of_json
from stepwell.nearest_names import did_you_mean
from stepwell.ptb.item import Message

_TOOLS = (
    "You can call functions. Each line below describes one as JSON:\n<tools>\n{tools}\n</tools>\n"
    "To call a function, write its name and arguments as JSON between these tags, and nothing after them:\n"
    '<tool_call>\n{{"name": "<name>", "arguments": {{"<argument>": <value>}}}}\n</tool_call>'
)
"""The tags are Hermes's, which the published evaluation expects of all its models."""


class NoTemplate(ValueError):
    """A base model has no declared template."""


class ChatTemplate(BaseModel):
    """The format of a conversation."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    begin: str
    """What stands before all."""
    message: str
    """One message, with `{role}` and `{content}`."""
    answer: str
    """What the model continues."""
    assistant: str
    """How the format calls the assistant."""
    system: Literal["message", "in_first_user"]
    """Where a system message stands."""

    @property
    def digest(self) -> str:
        """Of the format and of how tools are offered: part of what makes two results comparable."""
        return digest_of_json([self.model_dump(), _TOOLS])


class _Templates(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    templates: dict[str, ChatTemplate]
    models: dict[str, str]


@cache
def _declared() -> _Templates:
    return _Templates.model_validate(tomllib.loads(Path(__file__).with_name("templates.toml").read_text("utf-8")))


def template_of(base_model: str) -> ChatTemplate:
    """The template of the base model that a trial was started with; only its exact name counts.

    Args:
        base_model: Organisation and name, as the trial's own record says.

    Raises:
        NoTemplate: none is declared for it.
    """
    declared = _declared()
    name = declared.models.get(base_model)
    if name is None:
        hint = did_you_mean(base_model, declared.models)
        known = ", ".join(declared.models)
        raise NoTemplate(
            f"no template for the base model {base_model!r}; there are some for {known}; {hint}".rstrip("; ")
        )
    return declared.templates[name]


def render(template: ChatTemplate, messages: Sequence[Message], tools: Sequence[str] = ()) -> str:
    """The text that the model continues.

    Args:
        template: The base model's.
        messages: The conversation, which ends with a request.
        tools: Functions on offer, each as JSON text; they stand in the system message.

    Raises:
        ValueError: the conversation does not end with a request.
    """
    if not messages or messages[-1].role != "user":
        raise ValueError("the conversation does not end with a request, so there is nothing to answer")
    system = [one.content for one in messages if one.role == "system"]
    if tools:
        system.append(_TOOLS.format(tools="\n".join(tools)))
    turns = [one for one in messages if one.role != "system"]
    if system and template.system == "message":
        turns.insert(0, Message("system", "\n\n".join(system)))
    elif system:
        first = next(at for at, one in enumerate(turns) if one.role == "user")
        turns[first] = Message("user", "\n\n".join([*system, turns[first].content]))
    text = template.begin
    for one in turns:
        role = template.assistant if one.role == "assistant" else one.role
        text += template.message.format(role=role, content=one.content)
    return text + template.answer
