"""A judge behind an address that speaks OpenAI's chat completions."""

import asyncio
import json
from dataclasses import dataclass
from types import TracebackType

import aiohttp

from stepwell.ptb.judging.judge import JudgeFailed, Question


@dataclass(frozen=True)
class JudgeSettings:
    """Which judge, and how it is asked."""

    address: str
    """Up to the version, as `http://127.0.0.1:8000/v1`."""
    model: str
    effort: str | None = None
    """Reasoning effort, for models that take one."""
    max_tokens: int = 16384
    """Of one judgement, reasoning included."""
    timeout_s: float = 600.0
    at_once: int = 8
    """Questions under way at the same time."""

    @property
    def version(self) -> str:
        """Model, effort and length of answers; not the address, which says nothing of what is judged."""
        return f"{self.model}, effort {self.effort or 'default'}, {self.max_tokens} tokens"


class OpenAIJudge:
    """Asks over HTTP; a `Judge`, and an asynchronous context.

    Args:
        settings: Which judge.
        key: Secret that the address asks for; it is sent and never shown.
    """

    def __init__(self, settings: JudgeSettings, key: str | None = None) -> None:
        self._settings = settings
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                force_close=True
            ),  # a server may close an idle connection as it is used again
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=settings.timeout_s),
            trust_env=False,
        )
        self._turns = asyncio.Semaphore(settings.at_once)

    @property
    def version(self) -> str:
        """Of the settings."""
        return self._settings.version

    async def __aenter__(self) -> "OpenAIJudge":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def ask(self, question: Question) -> str:
        """What it says; raises `JudgeFailed` if there is no whole answer."""
        settings = self._settings
        body: dict[str, object] = {
            "model": settings.model,
            "messages": [{"role": one.role, "content": one.content} for one in question.messages],
            "seed": question.seed,
            "max_completion_tokens": settings.max_tokens,
        }
        if settings.effort is not None:
            body["reasoning_effort"] = settings.effort
        address = f"{settings.address.rstrip('/')}/chat/completions"
        try:
            async with self._turns, self._session.post(address, json=body) as response:
                text = await response.text()
                status = response.status
        except (aiohttp.ClientError, TimeoutError, UnicodeDecodeError) as error:
            raise JudgeFailed(
                f"{address} cannot be asked ({type(error).__name__}: {error}): is the judge up?"
            ) from error
        if status != 200:
            raise JudgeFailed(f"{address} said {status}: {text[:300]}; look at the judge's model, key and credit")
        return _content(text, address)


def _content(text: str, address: str) -> str:
    """The one whole answer of a completion."""
    try:
        choice = json.loads(text)["choices"][0]
        content: object = choice["message"]["content"]
        ended: object = choice.get("finish_reason")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise JudgeFailed(f"{address} sent no chat completion: {text[:300]}") from error
    if not isinstance(content, str) or not content.strip():
        raise JudgeFailed(f"{address} sent an empty judgement ({ended})")
    if ended == "length":
        raise JudgeFailed(f"{address} was cut off at its limit of tokens: give judgements more")
    return content
