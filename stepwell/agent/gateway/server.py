"""The endpoint: `POST /v1/chat/completions` and `GET /v1/models`, one bearer token a rollout.

| status | meaning | tried again by clients |
|---|---|---|
| 400 | malformed, or `context_length_exceeded` | no |
| 401 | the token opens no rollout, or no longer | no |
| 403 | `turns_used_up`, `wall_clock_used_up` | no |
| 503 | no engine answered | yes |
"""

import hashlib
import secrets
from collections.abc import Awaitable, Callable

from aiohttp import web

from stepwell.agent.gateway.answers import completion, events
from stepwell.agent.gateway.conversation import parse_request
from stepwell.agent.gateway.refusals import Refused, unknown_token
from stepwell.agent.gateway.sandbox_door import SandboxDoor
from stepwell.agent.gateway.session import GatewaySession
from stepwell.agent.protocol import StopReason

MODEL = "policy"
"""Name of the one model, whatever a client asks for."""
_MAX_BODY_BYTES = 64 << 20


class Gateway:
    """The rollouts that harnesses play in this process, by the digest of their tokens."""

    def __init__(self) -> None:
        self._sessions: dict[str, GatewaySession] = {}
        self._doors: dict[str, SandboxDoor] = {}

    def open(self, session: GatewaySession, door: SandboxDoor | None = None) -> str:
        """Takes a rollout's calls from now on.

        Args:
            session: The rollout.
            door: To its sandbox, for a harness that runs outside of it.

        Returns:
            Its token, which is kept nowhere.
        """
        token = secrets.token_urlsafe(32)
        self._sessions[_digest(token)] = session
        if door is not None:
            self._doors[_digest(token)] = door
        return token

    async def close(self, token: str) -> StopReason:
        """Takes the rollout's calls no more; why it ended.

        Raises:
            KeyError: the token opens no rollout.
        """
        session = self._sessions.pop(_digest(token))
        self._doors.pop(_digest(token), None)
        return await session.close()

    def app(self) -> web.Application:
        """The application."""
        app = web.Application(client_max_size=_MAX_BODY_BYTES, middlewares=[_in_openai_form])
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/sandbox/exec", self._exec)
        app.router.add_post("/v1/sandbox/tool", self._tool)
        return app

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        session = self._sessions.get(_token_digest(request))
        if session is None:
            raise unknown_token()
        asked = parse_request(await request.read())
        call = await session.answer(asked)
        if not asked.stream:
            return web.json_response(completion(call, asked, session.renderer, MODEL))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
        await response.prepare(request)
        for event in events(call, asked, session.renderer, MODEL):
            await response.write(event)
        await response.write_eof()
        return response

    async def _models(self, request: web.Request) -> web.StreamResponse:
        session = self._sessions.get(_token_digest(request))
        if session is None:
            raise unknown_token()
        limit = session.limits.max_context_tokens
        model = {"id": MODEL, "object": "model", "created": 0, "owned_by": "stepwell", "max_model_len": limit}
        return web.json_response({"object": "list", "data": [model]})

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(await self._door(request).exec(await request.read()))

    async def _tool(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(await self._door(request).tool(await request.read()))

    def _door(self, request: web.Request) -> SandboxDoor:
        door = self._doors.get(_token_digest(request))
        if door is None:
            raise unknown_token()
        return door


@web.middleware
async def _in_openai_form(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        return await handler(request)
    except Refused as refused:
        found = refused
    except web.HTTPException as error:
        found = Refused(error.status, "invalid_request_error", "invalid_request", f"{request.path}: {error.reason}")
    headers = {"Retry-After": "1"} if found.status == 503 else None
    return web.Response(status=found.status, body=found.body(), content_type="application/json", headers=headers)


def _token_digest(request: web.Request) -> str:
    return _digest(request.headers.get("Authorization", "").removeprefix("Bearer "))


def _digest(token: str) -> str:
    """Tokens are looked up by digest, so that how long it takes says nothing about them."""
    return hashlib.sha256(token.encode()).hexdigest()
