"""A rollout that a harness of its own plays through the gateway of this worker."""

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stepwell.agent.chat import ChatRenderer
from stepwell.agent.episode import Divergence, EpisodeLimits, PromptTooLong, Sample, Sampled
from stepwell.agent.gateway.harness_end import HarnessEnd, RunHarness
from stepwell.agent.gateway.record import RecordedCall
from stepwell.agent.gateway.sandbox_door import SandboxDoor
from stepwell.agent.gateway.server import Gateway
from stepwell.agent.gateway.session import GatewaySession, Record
from stepwell.agent.protocol import StopReason
from stepwell.agent.turn import RecordedTurn
from stepwell.policy.protocol import EngineError, WrongVersion

GRACE_S = 60.0
"""Of a harness beyond the agent's clock, for its own start and end."""


class HarnessFailed(RuntimeError):
    """The harness ended by an error of its own: infrastructure, never a score."""


@dataclass(frozen=True)
class HarnessRollout:
    """What a harness is given."""

    command: Sequence[str]
    """Program by its full path, and arguments."""
    issue: str
    """What it reads on its standard input."""
    renderer: ChatRenderer
    limits: EpisodeLimits
    door: SandboxDoor
    version: int
    """Weight version that makes every token."""


@dataclass(frozen=True)
class HarnessHost:
    """Where this worker's harnesses run."""

    gateway: Gateway
    url: str
    """Of the gateway."""
    folder: Path
    """Holds a folder for each harness while it runs."""
    run: RunHarness

    async def play(
        self, rollout: HarnessRollout, recorded: Sequence[RecordedTurn], sample: Sample, record: Record
    ) -> StopReason:
        """Runs the harness to its end; why the rollout ended.

        Raises:
            Divergence: it did something else than when the turns were recorded.
            HarnessFailed: it ended by an error of its own, or asked for nothing.
            PromptTooLong: its first prompt does not fit.
        """
        stop: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        session = GatewaySession(
            rollout.renderer,
            rollout.limits,
            _stopping(stop, sample),
            _recording(stop, record),
            rollout.door.sandbox.tree_digest,
            recorded,
            rollout.version,
        )
        token = self.gateway.open(session, rollout.door)
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.folder) as home:
            harness = asyncio.create_task(self._run(rollout, token, Path(home)))
            try:
                await asyncio.wait((harness, stop, session.diverged), return_when=asyncio.FIRST_COMPLETED)
            finally:
                harness.cancel()
                await asyncio.wait((harness,))
                end = await self.gateway.close(token)
        if stop.done():
            stop.result()
        if session.diverged.done():
            raise session.diverged.result()
        why = _why(harness.result(), end)
        if session.asks_less:
            raise Divergence(len(session.calls), "another call", "the harness's end")
        if not session.calls:
            _refuse_silence(rollout, why)
        return why

    async def _run(self, rollout: HarnessRollout, token: str, home: Path) -> HarnessEnd:
        environment = {
            "HOME": str(home),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "STEPWELL_GATEWAY": self.url,
            "STEPWELL_TOKEN": token,
        }
        return await self.run(
            rollout.command,
            environment=environment,
            folder=home,
            stdin=rollout.issue.encode(),
            timeout_s=rollout.limits.wall_clock_s + GRACE_S,
        )


def _refuse_silence(rollout: HarnessRollout, end: StopReason) -> None:
    if end is StopReason.CONTEXT:
        limit = rollout.limits.max_context_tokens
        raise PromptTooLong(
            f"the harness's first prompt does not fit the context of {limit} tokens: raise agent.max_context_tokens"
        )
    raise HarnessFailed("the harness ended without a single call: does it use STEPWELL_GATEWAY and STEPWELL_TOKEN?")


def _why(harness: HarnessEnd, end: StopReason) -> StopReason:
    """A bound that it ran into, or its deadline; else it must have ended well."""
    if end is not StopReason.FINISHED:
        return end
    if harness.timed_out:
        return StopReason.WALL_CLOCK
    if harness.returncode != 0:
        raise HarnessFailed(f"the harness ended with {harness.returncode}; its last words: {harness.output[-2000:]}")
    return end


def _stopping(stop: "asyncio.Future[None]", sample: Sample) -> Sample:
    """Hands whatever is no engine's failure, such as an operator's pause, to who plays the rollout."""

    async def sampled(context: tuple[int, ...], room: int, turn: int) -> Sampled:
        try:
            return await sample(context, room, turn)
        except (EngineError, WrongVersion):
            raise
        except Exception as error:
            raise _handed_on(stop, error) from error

    return sampled


def _recording(stop: "asyncio.Future[None]", record: Record) -> Record:
    """The same for what cannot be recorded."""

    async def recorded(call: RecordedCall) -> None:
        try:
            await record(call)
        except Exception as error:
            raise _handed_on(stop, error) from error

    return recorded


def _handed_on(stop: "asyncio.Future[None]", error: Exception) -> EngineError:
    if not stop.done():
        stop.set_exception(error)
    return EngineError("the rollout is given up")
