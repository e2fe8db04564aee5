"""Chat formats: how issue, actions and observations become tokens. Nothing generated is ever tokenised again."""

from dataclasses import dataclass

from tokenizers import Tokenizer


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
    """Template with `{text}` for an observation, directly after the stop token of a turn."""
    assistant: str
    """Head of the assistant's turn."""
    stop: tuple[str, ...]
    """Tokens that end the assistant's turn; the first is the usual one."""


CHATML = ChatFormat(
    system="<|im_start|>system\n{text}<|im_end|>\n",
    user="<|im_start|>user\n{text}<|im_end|>\n",
    tool="\n<|im_start|>user\n{text}<|im_end|>\n",
    assistant="<|im_start|>assistant\n",
    stop=("<|im_end|>",),
)
"""The format of SmolLM2, Qwen and many others; an observation comes as the user's word, which all of them know."""

MICRO = ChatFormat(
    system="<|user|> {text}\n",
    user="<|user|> {text}",
    tool="<|tool|>{text}",
    assistant="<|assistant|>",
    stop=("<|end|>",),
)
"""The micro policy's own: one token a role, so that an episode stays short. The space makes a name at the start of an
issue the same token as in code."""


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
        self._chat = chat
        self.stop_token_ids = tuple(_id_of(tokenizer, token) for token in chat.stop)

    def prompt_ids(self, system: str, issue: str) -> tuple[int, ...]:
        """The first context: system text (if any), the issue as user, and the head of the assistant's turn."""
        head = self._chat.system.format(text=_plain(system)) if system else ""
        return self._encode(head + self._chat.user.format(text=_plain(issue)) + self._chat.assistant)

    def observation_ids(self, text: str) -> tuple[int, ...]:
        """What follows a generated turn that ended with a stop token."""
        return self._encode(self._chat.tool.format(text=_plain(text)) + self._chat.assistant)

    def action_text(self, token_ids: tuple[int, ...]) -> str:
        """Text of a generated turn without its stop token."""
        ids = list(token_ids)
        if ids and ids[-1] in self.stop_token_ids:
            ids.pop()
        return self._tokenizer.decode(ids, skip_special_tokens=False)

    def _encode(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)


def _id_of(tokenizer: Tokenizer, token: str) -> int:
    identity = tokenizer.token_to_id(token)
    if identity is None:
        raise NoSuchToken(f"the tokenizer has no token {token!r}, which this chat format ends a turn with")
    return identity


def _plain(text: str) -> str:
    """Text from outside cannot speak with the format's control tokens: `<|` is taken apart."""
    return text.replace("<|", "< |")
