"""A conversation as tokens, in which every turn that was sampled here stands as the tokens that were sampled."""

from collections.abc import Callable, Sequence

from stepwell.agent.chat import ChatRenderer, plain
from stepwell.agent.gateway.conversation import Message
from stepwell.agent.tool_calls import Parsed, Tool, ToolCall

Sampled = Callable[[Message], tuple[int, ...] | None]
"""The recorded ids of an assistant's message, if it was sampled here."""


def first_ids(
    renderer: ChatRenderer, messages: Sequence[Message], tools: Sequence[Tool], sampled: Sampled
) -> tuple[int, ...]:
    """A whole prompt: system text and tools, the messages, and the head of the assistant's turn."""
    system, rest = "", messages
    if messages[0].role == "system":
        system, rest = plain(messages[0].said.text), messages[1:]
    if tools:
        system = renderer.chat.calls.describe(tools, system)
    head = renderer.chat.system.format(text=system) if system else ""
    return _encode(renderer, [head, *_pieces(renderer, rest, sampled), renderer.chat.assistant])


def next_ids(renderer: ChatRenderer, messages: Sequence[Message], sampled: Sampled) -> tuple[int, ...]:
    """What follows a sampled turn that is closed: the messages after it, and the head of the next turn."""
    return _encode(renderer, [renderer.chat.after, *_pieces(renderer, messages, sampled), renderer.chat.assistant])


def closed(renderer: ChatRenderer, token_ids: tuple[int, ...]) -> tuple[int, ...]:
    """A sampled turn with its stop token; one that was cut off gets one."""
    if token_ids and token_ids[-1] in renderer.stop_token_ids:
        return token_ids
    return (*token_ids, renderer.stop_token_ids[0])


def _pieces(renderer: ChatRenderer, messages: Sequence[Message], sampled: Sampled) -> list[str | tuple[int, ...]]:
    chat = renderer.chat
    pieces: list[str | tuple[int, ...]] = []
    answers: list[str] = []
    for message in messages:
        if message.role == "tool":
            answers.append(message.said.text)
            continue
        if answers:
            pieces.append(renderer.observations(answers))
            answers = []
        if message.role == "assistant":
            ids = sampled(message)
            if ids is not None:
                pieces += [chat.assistant, closed(renderer, ids), chat.after]
            else:
                pieces.append(chat.past + chat.calls.write(_plain(message.said)) + chat.stop[0] + chat.after)
        else:
            template = chat.system if message.role == "system" else chat.user
            pieces.append(template.format(text=plain(message.said.text)))
    if answers:
        pieces.append(renderer.observations(answers))
    return pieces


def _encode(renderer: ChatRenderer, pieces: Sequence[str | tuple[int, ...]]) -> tuple[int, ...]:
    """Neighbouring texts are tokenised as one, as they would be in the whole."""
    ids: list[int] = []
    text = ""
    for piece in pieces:
        if isinstance(piece, str):
            text += piece
            continue
        ids += renderer.encode(text)
        ids += piece
        text = ""
    return (*ids, *renderer.encode(text))


def _plain(said: Parsed) -> Parsed:
    calls = tuple(ToolCall(plain(call.name), _plain_values(call.arguments)) for call in said.calls)
    return Parsed(plain(said.text), calls)


def _plain_values(arguments: dict[str, object]) -> dict[str, object]:
    return {plain(key): plain(value) if isinstance(value, str) else value for key, value in arguments.items()}
