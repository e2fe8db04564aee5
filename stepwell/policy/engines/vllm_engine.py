"""The engine `vllm`: the real vLLM server in a child process, asked over HTTP; one code for its CPU and GPU wheels.

Where it differs from the protocol, because vLLM does: for a request with top_p below 1 the log-probabilities are those
after top_p (renormalised over the nucleus), since vLLM returns either that or the distribution before the temperature.
Requests for training have top_p 1, where both are the same; only validation, which uses no log-probability, cuts.
Temperatures below 0.01 are refused: vLLM would silently take 0.01.
"""

import asyncio
import math
import time
from pathlib import Path
from typing import Any, Literal

import aiohttp
from pydantic import BaseModel, ValidationError

from stepwell.policy.engines.config import EngineConfig
from stepwell.policy.engines.model_folder import check_same_model, read_config
from stepwell.policy.engines.request_check import check_request, check_token_ids
from stepwell.policy.engines.vllm_process import MODEL_NAME, VllmProcess
from stepwell.policy.protocol import EngineError, GenerateRequest, Generation, WrongVersion

_START_TIMEOUT_S = 600.0
_POLL_S = 0.25
_SEED_BITS = (1 << 63) - 1  # vLLM's seeds are signed, and -1 means none
_LOWEST_TEMPERATURE = 0.01


class _TokenLogprob(BaseModel):
    token_id: int
    logprob: float


class _Logprobs(BaseModel):
    content: list[_TokenLogprob]


class _Choice(BaseModel):
    finish_reason: str
    token_ids: list[int]
    logprobs: _Logprobs


class _Scored(BaseModel):
    logprob: float


class _Reply(BaseModel):
    choices: list[_Choice]
    prompt_logprobs: list[dict[int, _Scored] | None] | None = None


class VllmEngine:
    """See `stepwell.policy.protocol.Engine`. Serves no version until the first `load`."""

    def __init__(
        self, config: EngineConfig, folder: Path, process: VllmProcess, session: aiohttp.ClientSession
    ) -> None:
        """For `open`."""
        self._config = config
        self._model_config = read_config(folder)
        self._vocab_size = int(self._model_config.get("text_config", self._model_config)["vocab_size"])
        self._process = process
        self._session = session
        self._version: int | None = None
        self._in_flight = 0
        self._failed: str | None = None

    @classmethod
    async def open(cls, config: EngineConfig, folder: Path) -> "VllmEngine":
        """Starts the server with the model of `folder`, and waits until it answers: 12 to 100 s.

        Raises:
            EngineError: the folder is no model, or the server did not come up.
        """
        read_config(folder)
        process = await VllmProcess.start(config, folder)
        engine = cls(config, folder, process, session_to(process.socket))
        try:
            await engine._wait_until_up(config.start_timeout_s or _START_TIMEOUT_S)
        except BaseException:
            await engine.close()
            raise
        return engine

    async def load(self, version: int, folder: Path) -> None:
        """See the protocol."""
        if self._in_flight:
            raise EngineError(f"version {version} cannot be loaded while requests are being generated: drain first")
        check_same_model(self._model_config, folder)
        await self._post("/pause?mode=wait&clear_cache=true")
        try:
            await self._post("/start_weight_update")
            await self._post("/update_weights", {"update_info": {"path": str(folder.resolve())}})
        except EngineError:
            # Nothing has touched the model yet: it goes on with the version it had.
            await self._post("/resume")
            raise
        try:
            await self._post("/finish_weight_update", {"weight_version": str(version)})
            await self._post("/reset_prefix_cache")
            await self._post("/resume")
        except EngineError as error:
            self._failed = f"version {version} was put in only in part; start the engine anew: {error}"
            raise EngineError(self._failed) from error
        self._version = version

    async def generate(self, request: GenerateRequest) -> Generation:
        """See the protocol, and the module for what differs."""
        check_request(request, self._vocab_size, self._config.max_context)
        if request.temperature < _LOWEST_TEMPERATURE:
            raise ValueError(f"temperature is {request.temperature}, vLLM takes {_LOWEST_TEMPERATURE} at least")
        if request.version != self._version:
            raise WrongVersion(f"version {request.version} was asked for, the engine serves {self._version}")
        reply = await self._generate(
            request.token_ids,
            {
                "max_tokens": request.max_tokens,
                "temperature": request.temperature,
                "top_p": request.top_p,
                "seed": request.seed & _SEED_BITS,
                "stop_token_ids": list(request.stop_token_ids),
                "logprobs": 0,
            },
        )
        choice = reply.choices[0]
        logprobs = tuple(entry.logprob for entry in choice.logprobs.content)
        if len(logprobs) != len(choice.token_ids) or not all(map(math.isfinite, logprobs)):
            raise EngineError(f"vLLM sent {len(logprobs)} log-probabilities for {len(choice.token_ids)} tokens")
        return Generation(
            token_ids=tuple(choice.token_ids),
            logprobs=logprobs,
            finish_reason=_finish_reason(choice.finish_reason),
            version=request.version,
        )

    async def score(self, token_ids: tuple[int, ...]) -> tuple[float, ...]:
        """See the protocol."""
        check_token_ids(token_ids, self._vocab_size)
        if len(token_ids) >= self._config.max_context:
            raise ValueError(
                f"{len(token_ids)} tokens are too long to score, max_context is {self._config.max_context} and vLLM "
                "generates one more"
            )
        reply = await self._generate(
            token_ids, {"max_tokens": 1, "temperature": 1.0, "logprobs": 0, "prompt_logprobs": 0}
        )
        scored = reply.prompt_logprobs or []
        if len(scored) != len(token_ids):
            raise EngineError(f"vLLM scored {len(scored)} of {len(token_ids)} tokens")
        logprobs: list[float] = []
        for token, at in zip(token_ids[1:], scored[1:], strict=True):
            if at is None or token not in at:
                raise EngineError(f"vLLM sent no log-probability of the token {token}")
            logprobs.append(at[token].logprob)
        return tuple(logprobs)

    async def check(self) -> None:
        """See the protocol. The server answers by itself, and says whether its engine's process is alive."""
        if self._process.ended:
            self._failed = self._failed or self._why("the vLLM server has ended")
        if self._failed is not None:
            raise EngineError(self._failed)
        try:
            async with self._session.get("http://vllm/health") as response:
                status = response.status
        except (aiohttp.ClientError, OSError) as error:
            raise EngineError(self._why(f"the vLLM server is gone ({type(error).__name__})")) from error
        if status != 200:
            raise EngineError(self._why(f"vLLM answered {status} to /health"))

    async def close(self) -> None:
        """See the protocol. Twice is once."""
        self._failed = self._failed or "the engine is closed"
        await self._process.close()
        await self._session.close()

    async def _generate(self, token_ids: tuple[int, ...], sampling: dict[str, Any]) -> _Reply:
        # The salt keeps a prefix of one version from ever serving another, cleared or not.
        body = {
            "token_ids": token_ids,
            "cache_salt": f"v{self._version}",
            "sampling_params": {**sampling, "ignore_eos": True, "detokenize": False},
            "model": MODEL_NAME,
        }
        self._in_flight += 1
        try:
            answer = await self._post("/inference/v1/generate", body)
        finally:
            self._in_flight -= 1
        try:
            return _Reply.model_validate_json(answer)
        except ValidationError as error:
            raise EngineError(f"vLLM answered something else than wanted: {error}") from error

    async def _post(self, path: str, body: dict[str, Any] | None = None) -> bytes:
        if self._failed is not None:
            raise EngineError(self._failed)
        try:
            async with self._session.post(f"http://vllm{path}", json=body or {}) as response:
                content = await response.read()
        except (aiohttp.ClientError, OSError) as error:
            raise EngineError(self._why(f"the vLLM server is gone ({type(error).__name__})")) from error
        if response.status != 200:
            answer = content[:1000].decode(errors="replace")
            raise EngineError(self._why(f"vLLM answered {response.status} to {path}: {answer}"))
        return content

    async def _wait_until_up(self, timeout_s: float) -> None:
        until = time.monotonic() + timeout_s
        while True:
            if self._process.ended:
                raise EngineError(self._why("the vLLM server ended before it was up"))
            if time.monotonic() > until:
                raise EngineError(self._why(f"the vLLM server was not up after {timeout_s:.0f} s"))
            try:
                async with self._session.get("http://vllm/health") as response:
                    if response.status == 200:
                        return
            except (aiohttp.ClientError, OSError):
                pass  # it does not listen yet
            await asyncio.sleep(_POLL_S)

    def _why(self, what: str) -> str:
        if self._failed is not None:
            return self._failed
        return f"{what}; the end of its log:\n{self._process.log_tail()}"


def session_to(path: Path) -> aiohttp.ClientSession:
    """Requests to a server at a socket file, each over a connection of its own: vLLM closes one that was idle for
    seconds, which may be in the instant when it is taken up again."""
    connector = aiohttp.UnixConnector(str(path), limit=0, force_close=True)
    return aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None))


def _finish_reason(reason: str) -> Literal["stop", "length"]:
    if reason == "stop":
        return "stop"
    if reason == "length":
        return "length"
    raise EngineError(f"vLLM ended a generation with the reason {reason!r}; stop or length was wanted")
