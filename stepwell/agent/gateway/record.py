"""What a rollout's harness had the policy say: calls, the rows of tokens that they make, and the answers to retries."""

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from stepwell.agent.chat import ChatRenderer
from stepwell.agent.episode import Sampled
from stepwell.agent.gateway.conversation import ChatRequest, Message
from stepwell.agent.gateway.rendering import closed, first_ids, next_ids
from stepwell.agent.protocol import Action
from stepwell.agent.tool_calls import MalformedCall, Parsed, Tool
from stepwell.agent.turn import TurnPayload
from stepwell.events.canonical import canonical_json


@dataclass(frozen=True)
class RecordedCall:
    """A call that was answered."""

    index: int
    """From 0, in the order in which calls were answered."""
    position: int
    """Which sample at this prompt."""
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    prompt_ids: tuple[int, ...]
    """What the engine was asked with."""
    sampled: Sampled
    """What it said, and for how long."""
    reply: Message
    """The same as a message."""
    segment: int
    """Row of tokens that the call belongs to."""
    known: int
    """Tokens of the prompt that stand in the row already; 0 for a new row."""
    tree: str
    """Digest of the work tree when the call was recorded: the harness acts on the answer after that."""
    waited_s: float
    """Between the answer before it and this call: the harness's own time and that of its tools."""
    asked: dict[str, JsonValue]
    """What the harness asked for and did not get."""

    @property
    def token_ids(self) -> tuple[int, ...]:
        """The generated ids."""
        return self.sampled.generation.token_ids

    @property
    def row_ids(self) -> tuple[int, ...]:
        """Its row up to here."""
        return (*self.prompt_ids, *self.token_ids)

    @property
    def seconds(self) -> float:
        """What it adds to the agent's clock."""
        return self.sampled.seconds + self.waited_s

    def payload(self) -> TurnPayload:
        """The stored form. A harness carries its own actions out, so an observation is part of the next prompt."""
        generation, said = self.sampled.generation, self.reply.said
        action = Action("message", {})
        if said.calls:
            arguments = {key: _text(value) for key, value in said.calls[0].arguments.items()}
            action = Action(said.calls[0].name, arguments)
        return TurnPayload(
            delta_ids=self.prompt_ids[self.known :],
            token_ids=generation.token_ids,
            logprobs=generation.logprobs,
            finish_reason=generation.finish_reason,
            action=action,
            observation="",
            finished=False,
            segment=self.segment,
            asked=self.asked,
        )


class CallRecord:
    """The calls of one rollout, in order."""

    def __init__(self, renderer: ChatRenderer) -> None:
        self._renderer = renderer
        self.calls: list[RecordedCall] = []

    def prompt_ids(self, request: ChatRequest) -> tuple[int, ...]:
        """The prompt of a request. Where its messages go on from a call of this rollout, the prompt is that call's
        tokens and what came after them, and never those tokens made anew from text; in a conversation that was
        condensed or belongs to another agent, each turn that was sampled here stands as it was sampled."""
        parent = self._longest_parent(request)
        if parent is None:
            return first_ids(self._renderer, request.messages, request.tools, self._ids_of)
        rest = request.messages[len(parent.messages) + 1 :]
        said = closed(self._renderer, parent.token_ids)
        return (*parent.prompt_ids, *said, *next_ids(self._renderer, rest, self._ids_of))

    def answered(self, prompt_ids: tuple[int, ...], position: int) -> RecordedCall | None:
        """The answer to the same prompt at the same position, if it was given."""
        for call in self.calls:
            if call.position == position and call.prompt_ids == prompt_ids:
                return call
        return None

    def place(
        self, request: ChatRequest, prompt_ids: tuple[int, ...], sampled: Sampled, *, tree: str, waited_s: float
    ) -> RecordedCall:
        """The call, placed in the row that its prompt goes on from, or in a new one; not kept yet."""
        segment, known = self._row_of(prompt_ids)
        index = len(self.calls)
        return RecordedCall(
            index=index,
            position=request.position,
            messages=request.messages,
            tools=request.tools,
            prompt_ids=prompt_ids,
            sampled=sampled,
            reply=self._reply(request, prompt_ids, sampled),
            segment=segment,
            known=known,
            tree=tree,
            waited_s=waited_s,
            asked=request.asked,
        )

    def keep(self, call: RecordedCall) -> None:
        """The call stands."""
        self.calls.append(call)

    def rows(self) -> Iterator[RecordedCall]:
        """The last call of each row, which holds the whole of it, in the order of the rows."""
        last = {call.segment: call for call in self.calls}
        return (last[segment] for segment in sorted(last))

    def _longest_parent(self, request: ChatRequest) -> RecordedCall | None:
        """The call whose messages and answer are the longest beginning of the request's; of several, the newest."""
        found: RecordedCall | None = None
        for call in self.calls:
            if found is not None and len(call.messages) < len(found.messages):
                continue
            if call.tools == request.tools and _begins(request.messages, (*call.messages, call.reply)):
                found = call
        return found

    def _ids_of(self, message: Message) -> tuple[int, ...] | None:
        for call in reversed(self.calls):
            if call.reply.same_as(message):
                return call.token_ids
        return None

    def _row_of(self, prompt_ids: tuple[int, ...]) -> tuple[int, int]:
        best = (0, 0)
        rows = list(self.rows())
        for call in rows:
            length = len(call.prompt_ids) + len(call.token_ids)
            if length > best[1] and prompt_ids[:length] == call.row_ids:
                best = (call.segment, length)
        return best if best[1] else (len(rows), 0)

    def _reply(self, request: ChatRequest, prompt_ids: tuple[int, ...], sampled: Sampled) -> Message:
        text = self._renderer.action_text(sampled.generation.token_ids)
        said = Parsed(text, ())
        if request.tools:
            # A malformed call stays text: the harness tells the policy, as with any text that calls nothing.
            with contextlib.suppress(MalformedCall):
                said = self._renderer.chat.calls.parse(text, request.tools)
        ids = (_call_id(prompt_ids, request.position, place) for place in range(len(said.calls)))
        return Message("assistant", said, tuple(ids))


def _begins(messages: Sequence[Message], beginning: Sequence[Message]) -> bool:
    return len(messages) >= len(beginning) and all(
        ours.same_as(theirs) for ours, theirs in zip(beginning, messages, strict=False)
    )


def _call_id(prompt_ids: tuple[int, ...], position: int, place: int) -> str:
    """One that no other call of the rollout has: no two are asked with the same prompt at the same position."""
    digest = hashlib.sha256(canonical_json([list(prompt_ids), position, place])).hexdigest()
    return f"call_{digest[:24]}"


def _text(value: object) -> str:
    return value if isinstance(value, str) else canonical_json(value).decode()
