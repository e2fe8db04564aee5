"""A gateway with one rollout behind it, over HTTP, for tests of what harnesses see."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import aiohttp

from stepwell.agent.chat import ChatRenderer
from stepwell.agent.episode import EpisodeLimits, Sampled
from stepwell.agent.gateway.record import RecordedCall
from stepwell.agent.gateway.server import Gateway
from stepwell.agent.gateway.session import GatewaySession
from stepwell.policy.engine_http.server import listen
from stepwell.policy.protocol import GenerateRequest, Generation

LIMITS = EpisodeLimits(max_turns=30, max_context_tokens=8192, max_turn_tokens=512, wall_clock_s=600.0)


class Generates(Protocol):
    """An engine, or a client of one."""

    async def generate(self, request: GenerateRequest) -> Generation:
        """Continues a context."""
        ...


@dataclass
class RolloutSide:
    """What a session has behind it: an engine that is asked with a test's settings, and a record in memory."""

    engine: Generates
    renderer: ChatRenderer
    seconds: float
    """What each generation is said to have taken."""
    asked: list[GenerateRequest] = field(default_factory=list[GenerateRequest])
    said: list[Generation] = field(default_factory=list[Generation])
    stored: list[RecordedCall] = field(default_factory=list[RecordedCall])
    """As they were recorded, each before its answer was given."""

    async def sample(self, context: tuple[int, ...], room: int, turn: int) -> Sampled:
        """Asks the engine."""
        request = GenerateRequest(
            token_ids=context,
            max_tokens=room,
            temperature=1.0,
            top_p=1.0,
            seed=turn,
            stop_token_ids=self.renderer.stop_token_ids,
            version=0,
        )
        self.asked.append(request)
        generation = await self.engine.generate(request)
        self.said.append(generation)
        return Sampled(generation, "e", self.seconds)

    async def record(self, call: RecordedCall) -> None:
        """Keeps a call."""
        self.stored.append(call)


@dataclass
class Answer:
    """What a client got."""

    status: int
    body: dict[str, Any]

    @property
    def code(self) -> str:
        """OpenAI's code of an error."""
        return self.body["error"]["code"]

    @property
    def message(self) -> dict[str, Any]:
        """The assistant's message."""
        return self.body["choices"][0]["message"]


@dataclass
class OpenGateway:
    """One rollout and what stands around it."""

    gateway: Gateway
    session: GatewaySession
    token: str
    url: str
    http: aiohttp.ClientSession
    behind: RolloutSide

    @property
    def asked(self) -> list[GenerateRequest]:
        """What the engine was asked."""
        return self.behind.asked

    @property
    def said(self) -> list[Generation]:
        """What it said."""
        return self.behind.said

    @property
    def stored(self) -> list[RecordedCall]:
        """Calls that were recorded."""
        return self.behind.stored

    async def post(
        self, body: dict[str, Any], *, token: str | None = None, path: str = "/v1/chat/completions"
    ) -> Answer:
        """One call as plain HTTP."""
        headers = {"Authorization": f"Bearer {self.token if token is None else token}"}
        async with self.http.post(self.url + path, json=body, headers=headers) as response:
            return Answer(response.status, await response.json())

    async def chat(self, *messages: dict[str, Any], **more: Any) -> Answer:
        """One chat completion."""
        return await self.post({"model": "any", "messages": list(messages), **more})


@asynccontextmanager
async def open_gateway(
    engine: Generates, renderer: ChatRenderer, limits: EpisodeLimits = LIMITS, *, seconds: float = 0.25
) -> AsyncIterator[OpenGateway]:
    """Opens a rollout whose turns the engine says, each said to have taken `seconds`."""
    behind = RolloutSide(engine, renderer, seconds)

    async def no_tree() -> str:
        return ""

    gateway, session = Gateway(), GatewaySession(renderer, limits, behind.sample, behind.record, no_tree)
    token = gateway.open(session)
    listening = await listen(gateway.app())
    async with aiohttp.ClientSession() as http:
        try:
            yield OpenGateway(gateway, session, token, listening.url, http, behind)
        finally:
            await listening.close()


def user(text: str) -> dict[str, Any]:
    """A user's message."""
    return {"role": "user", "content": text}
