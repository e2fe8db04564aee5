"""Where a foreign harness solves a forged task: engine, gateway and sandbox are real, the brain is a script."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from stepwell.agent.chat import FORMATS, ChatName, ChatRenderer
from stepwell.agent.codeact import CodeActTools
from stepwell.agent.episode import EpisodeLimits
from stepwell.agent.gateway.harness_end import HarnessEnd
from stepwell.agent.gateway.record import RecordedCall
from stepwell.agent.gateway.sandbox_door import SandboxDoor
from stepwell.agent.gateway.server import Gateway
from stepwell.agent.gateway.session import GatewaySession
from stepwell.agent.protocol import StopReason
from stepwell.agent.tool_calls import Parsed, ToolCall
from stepwell.policy.engine_http.client import EngineClient
from stepwell.policy.engine_http.server import listen, make_app
from stepwell.policy.engine_http.service import EngineService
from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.sandbox.protocol import Sandbox, SandboxLimits
from stepwell.tasks.forge import forged_task
from stepwell.tasks.grading.grade import grade
from stepwell.tasks.grading.verdict import Score
from tests.stack.open_gateway import RolloutSide
from tests.stack.played_engine import PlayedEngine, smollm2_tokenizer
from workers.harness import run_harness

ROOT = Path(__file__).parents[2]
LIMITS = EpisodeLimits(max_turns=30, max_context_tokens=65_536, max_turn_tokens=4096, wall_clock_s=600.0)
TASK = forged_task(0, "train", 0)


def the_edit() -> tuple[str, str, str]:
    """Path, and the one line that the reference solution changes: as it is, as it should be."""
    (path, fixed), *_ = TASK.gold.items()
    pairs = zip(TASK.files[path].split("\n"), fixed.split("\n"), strict=True)
    (old, new), *_ = [pair for pair in pairs if pair[0] != pair[1]]
    return path, old, new


@dataclass
class ProvingGround:
    """One rollout, open to a harness."""

    engine: PlayedEngine
    session: GatewaySession
    stored: list[RecordedCall]
    """As they were recorded, each before its answer was given."""
    gateway: Gateway
    token: str
    url: str
    sandbox: Sandbox
    sandboxes: BubblewrapFactory
    folder: Path

    async def play(self, argv: Sequence[str], environment: Mapping[str, str], *, timeout_s: float) -> HarnessEnd:
        """Runs the harness on the task, and closes the rollout."""
        own = {"HOME": str(self.folder), "PATH": "/usr/bin:/bin", "STEPWELL_GATEWAY": self.url}
        end = await run_harness(
            argv,
            environment=own | {"STEPWELL_TOKEN": self.token} | environment,
            folder=self.folder,
            stdin=TASK.issue.encode(),
            timeout_s=timeout_s,
        )
        assert await self.gateway.close(self.token) is StopReason.FINISHED
        return end

    def assert_recorded_is_what_the_engine_said(self) -> None:
        """Prompt and generated ids and log-probabilities, call by call, in one row that nothing was made anew in."""
        calls = self.session.calls
        assert list(calls) == self.stored
        assert not self.engine.texts, "every turn of the script was asked for"
        assert [call.prompt_ids for call in calls] == [each.request.token_ids for each in self.engine.played]
        assert [call.sampled.generation for call in calls] == [each.generation for each in self.engine.played]
        assert {call.segment for call in calls} == {0}
        for before, after in pairwise(calls):
            assert after.prompt_ids[: len(before.row_ids)] == before.row_ids
            assert after.known == len(before.row_ids)

    async def score(self) -> float:
        """The hidden tests' verdict on the work tree."""
        verdict = await grade(TASK, await self.sandbox.changed_files(), self.sandboxes)
        assert isinstance(verdict, Score)
        return verdict.value


@asynccontextmanager
async def proving_ground(
    folder: Path, turns: Sequence[Parsed], chat_name: ChatName = "chatml"
) -> AsyncIterator[ProvingGround]:
    """Opens the rollout; the policy says `turns`."""
    tokenizer, chat = smollm2_tokenizer().backend_tokenizer, FORMATS[chat_name]
    renderer = ChatRenderer(tokenizer, chat)
    engine = PlayedEngine(tokenizer, chat.stop[0], *(chat.calls.write(turn) for turn in turns))
    engine_side = await listen(make_app(EngineService(engine), "s" * 32))
    client = EngineClient(engine_side.url, "s" * 32)
    behind = RolloutSide(client, renderer, seconds=0.0)
    sandboxes = BubblewrapFactory(folder / "trees")
    sandbox = await sandboxes.create({path: text.encode() for path, text in TASK.files.items()}, SandboxLimits())
    gateway, session = Gateway(), GatewaySession(renderer, LIMITS, behind.sample, behind.record, sandbox.tree_digest)
    token = gateway.open(session, SandboxDoor(sandbox, CodeActTools(), TASK))
    listening = await listen(gateway.app())
    home = folder / "home"
    home.mkdir()
    try:
        yield ProvingGround(engine, session, behind.stored, gateway, token, listening.url, sandbox, sandboxes, home)
    finally:
        await listening.close()
        await sandboxes.close()
        await client.close()
        await engine_side.close()


def call(text: str, tool: str, /, **arguments: object) -> Parsed:
    """A turn of the script."""
    return Parsed(text, (ToolCall(tool, arguments),))


def harness_python(name: str) -> Path:
    """The interpreter of a harness's environment."""
    return ROOT / ".venv-harnesses" / name / "bin" / "python"
