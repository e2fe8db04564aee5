"""Chat formats: how issue, actions and observations become tokens. Nothing generated is ever tokenised again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tokenizers import Tokenizer

from stepwell.agent.tool_calls import JSON_CALLS, XML_CALLS, CallFormat

ChatName = Literal["micro", "chatml", "qwen3", "qwen3_xml"]


class NoSuchToken(ValueError):
    """A tokenizer lacks a token that a chat format needs."""


@dataclass(frozen=True)
class ChatFormat:
    """Texts around the parts of a conversation."""

    system: str
    """Template with `{text}`."""
    user: str
    """Template with `{text}`."""
    tool: str
    """Template with `{text}` for one observation."""
    tools: str
    """Template with `{text}` for the observations that answer one turn, one a line."""
    assistant: str
    """Head of the assistant's turn that is to be generated."""
    past: str
    """Head of an assistant's turn that was not generated here."""
    after: str
    """What follows the stop token of a turn."""
    stop: tuple[str, ...]
    """Tokens that end the assistant's turn; the first is the usual one."""
    calls: CallFormat
    """Form of tool calls."""


_USER = "<|im_start|>user\n{text}<|im_end|>\n"

CHATML = ChatFormat(
    system="<|im_start|>system\n{text}<|im_end|>\n",
    user=_USER,
    tool="{text}",
    tools=_USER,
    assistant="<|im_start|>assistant\n",
    past="<|im_start|>assistant\n",
    after="\n",
    stop=("<|im_end|>",),
    calls=JSON_CALLS,
)
"""The format of SmolLM2 and many others; an observation comes as the user's word, which all of them know."""

QWEN3 = ChatFormat(
    system=CHATML.system,
    user=_USER,
    tool="<tool_response>\n{text}\n</tool_response>",
    tools=_USER,
    assistant="<|im_start|>assistant\n<think>\n\n</think>\n\n",
    past="<|im_start|>assistant\n",
    after="\n",
    stop=("<|im_end|>",),
    calls=JSON_CALLS,
)
"""Qwen3 with `enable_thinking` false: the head of a turn holds an empty thought."""

QWEN3_XML = ChatFormat(
    system=CHATML.system,
    user=_USER,
    tool=QWEN3.tool,
    tools=_USER,
    assistant=QWEN3.assistant,
    past=QWEN3.assistant,
    after="\n",
    stop=("<|im_end|>",),
    calls=XML_CALLS,
)
"""Qwen3.5 with `enable_thinking` false: calls in XML, what vLLM's tool parser `qwen3_xml` reads."""

MICRO = ChatFormat(
    system="<|user|> {text}\n",
    user="<|user|> {text}",
    tool="<|tool|>{text}",
    tools="{text}",
    assistant="<|assistant|>",
    past="<|assistant|>",
    after="",
    stop=("<|end|>",),
    calls=JSON_CALLS,
)
"""The micro policy's own: one token a role, so that an episode stays short. The space makes a name at the start of an
issue the same token as in code."""

FORMATS: dict[ChatName, ChatFormat] = {"micro": MICRO, "chatml": CHATML, "qwen3": QWEN3, "qwen3_xml": QWEN3_XML}


class ChatRenderer:
    """`Renderer` of one chat format with one tokenizer."""

    def __init__(self, tokenizer: Tokenizer, chat: ChatFormat) -> None:
        """Args:
            tokenizer: as in a model folder's `tokenizer.json`.
            chat: the format; its stop tokens must each be one token.

        Raises:
            NoSuchToken: the tokenizer lacks a stop token of the format.
        """
        self._tokenizer = tokenizer
        self.chat = chat
        self.stop_token_ids = tuple(_id_of(tokenizer, token) for token in chat.stop)

    def prompt_ids(self, system: str, issue: str) -> tuple[int, ...]:
        """The first context: system text (if any), the issue as user, and the head of the assistant's turn."""
        head = self.chat.system.format(text=plain(system)) if system else ""
        return self.encode(head + self.chat.user.format(text=plain(issue)) + self.chat.assistant)

    def observation_ids(self, text: str) -> tuple[int, ...]:
        """What follows a generated turn that ended with a stop token."""
        return self.encode(self.chat.after + self.observations([text]) + self.chat.assistant)

    def observations(self, texts: Sequence[str]) -> str:
        """Observations that answer one turn, as text of the format."""
        return self.chat.tools.format(text="\n".join(self.chat.tool.format(text=plain(text)) for text in texts))

    def action_text(self, token_ids: tuple[int, ...]) -> str:
        """Text of a generated turn without its stop token."""
        ids = list(token_ids)
        if ids and ids[-1] in self.stop_token_ids:
            ids.pop()
        return self._tokenizer.decode(ids, skip_special_tokens=False)

    def encode(self, text: str) -> tuple[int, ...]:
        """Tokens of a text in which control tokens are meant as such."""
        return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def token_text(self, token_id: int) -> str:
        """One token by itself, for those who show it."""
        return self._tokenizer.decode([token_id], skip_special_tokens=False)


def plain(text: str) -> str:
    """Text from outside cannot speak with the format's control tokens: `<|` is taken apart."""
    return text.replace("<|", "< |")


def _id_of(tokenizer: Tokenizer, token: str) -> int:
    identity = tokenizer.token_to_id(token)
    if identity is None:
        raise NoSuchToken(f"the tokenizer has no token {token!r}, which this chat format ends a turn with")
    return identity
