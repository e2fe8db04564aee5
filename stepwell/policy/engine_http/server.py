"""The engine's side of the wire: `POST /v1/generate` and `GET /v1/health` behind a bearer token.

| status | meaning |
|---|---|
| 400 | the request is malformed or does not fit the model |
| 401 | the token is missing or wrong |
| 409 | another weight version is served |
| 503 | the engine failed, or takes no new request for now |
"""

import hmac
from dataclasses import dataclass

from aiohttp import web
from pydantic import ValidationError

from stepwell.policy.engine_http.service import EngineService
from stepwell.policy.engine_http.wire import (
    GENERATE_PATH,
    GENERATION,
    HEALTH,
    HEALTH_PATH,
    REFUSAL,
    REQUEST,
    Refusal,
)
from stepwell.policy.protocol import EngineError, WrongVersion

_MAX_BODY_BYTES = 32 << 20  # a context of a million tokens, with room


def make_app(service: EngineService, token: str) -> web.Application:
    """The application; only who sends `Authorization: Bearer <token>` is answered."""
    expected = f"Bearer {token}".encode()

    def authorised(request: web.Request) -> bool:
        return hmac.compare_digest(request.headers.get("Authorization", "").encode(), expected)

    async def generate(request: web.Request) -> web.Response:
        if not authorised(request):
            return _refuse(401, "the bearer token is missing or wrong")
        try:
            asked = REQUEST.validate_json(await request.read(), strict=True)
            generation = await service.generate(asked)
        except WrongVersion as error:
            return _refuse(409, str(error))
        except EngineError as error:
            return _refuse(503, str(error))
        except (ValidationError, ValueError) as error:
            return _refuse(400, str(error))
        return web.Response(body=GENERATION.dump_json(generation), content_type="application/json")

    async def health(request: web.Request) -> web.Response:
        if not authorised(request):
            return _refuse(401, "the bearer token is missing or wrong")
        return web.Response(body=HEALTH.dump_json(service.health()), content_type="application/json")

    app = web.Application(client_max_size=_MAX_BODY_BYTES)
    app.router.add_post(GENERATE_PATH, generate)
    app.router.add_get(HEALTH_PATH, health)
    return app


def _refuse(status: int, reason: str) -> web.Response:
    return web.Response(status=status, body=REFUSAL.dump_json(Refusal(reason)), content_type="application/json")


@dataclass(frozen=True)
class Listening:
    """A server that listens."""

    url: str
    runner: web.AppRunner

    async def close(self) -> None:
        """Stops listening and cancels the requests under way."""
        await self.runner.cleanup()


async def listen(app: web.Application, host: str = "127.0.0.1", port: int = 0) -> Listening:
    """Serves `app` in this event loop; port 0 takes a free one.

    Raises:
        OSError: the address cannot be bound.
    """
    # A request whose client went away is cancelled, so that the engine stops generating for nobody.
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
    await runner.setup()
    site = web.TCPSite(runner, host, port, backlog=1024)
    try:
        await site.start()
    except OSError:
        await runner.cleanup()
        raise
    bound = runner.addresses[0]
    name = f"[{host}]" if ":" in host else host
    return Listening(url=f"http://{name}:{bound[1]}", runner=runner)
