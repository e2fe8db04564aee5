"""run_rollout: one attempt at a rollout, taken up at its last recorded turn."""

import uuid
from collections.abc import Sequence
from datetime import timedelta

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.agent_sandbox import agent_sandbox
from activities.agent_settings import episode_limits, tool_set
from activities.engine_pool import EnginePool
from activities.folds import RolloutFold, fold_rollout
from activities.harness_rollout import HarnessFailed, HarnessHost, HarnessRollout
from activities.holds import Held, Holds
from activities.policy_files import PolicyFiles
from activities.stores import RunFacts, Stores
from activities.task_images import TaskImages
from db.errors import Fenced
from stepwell.agent.chat import ChatRenderer
from stepwell.agent.episode import Divergence, Episode, PromptTooLong, Sampled, Turn
from stepwell.agent.gateway.record import RecordedCall
from stepwell.agent.gateway.sandbox_door import SandboxDoor
from stepwell.agent.protocol import StopReason
from stepwell.agent.tool_calls import JSON_CALLS
from stepwell.agent.turn import RecordedTurn, TurnPayload, changed_files_blob
from stepwell.contracts.rollout import FailureKind, RolloutOutcome, RolloutRequest
from stepwell.events import (
    AttemptOpened,
    RolloutEnded,
    RolloutGraded,
    RolloutRestarted,
    RowsRecorded,
    TurnRecorded,
    VerdictReached,
)
from stepwell.events.base import Event
from stepwell.events.streams import rollout_stream, verdict_stream
from stepwell.policy.protocol import GenerateRequest
from stepwell.rl.rows import recorded_rows
from stepwell.rl.samples import rollout_content
from stepwell.rl.seeds import derive_seed
from stepwell.sandbox.protocol import Sandbox, SandboxFactory
from stepwell.tasks.graders import grader_of
from stepwell.tasks.grading.verdict import verdict_key
from stepwell.tasks.task import Task

LOOK_FOR_ENGINE = timedelta(seconds=5)
"""Until a rollout whose run has no engine is tried again."""
MAX_RESTARTS = 3
"""A rollout whose actions never do the same twice cannot be taken up; after this the attempt fails."""


class RolloutClosed(RuntimeError):
    """The rollout's budget was used up before this attempt began."""


class RolloutActivities:
    """Runs rollouts in this worker's sandboxes."""

    def __init__(
        self,
        stores: Stores,
        engines: EnginePool,
        sandboxes: SandboxFactory,
        policies: PolicyFiles,
        harnesses: HarnessHost | None = None,
        images: TaskImages | None = None,
    ) -> None:
        """Args:
        harnesses: Where harnesses that are no part of Stepwell run, for recipes that name one.
        images: Shared with who else uses them in this process.
        """
        self._stores = stores
        self._harnesses = harnesses
        self._engines = engines
        self._sandboxes = sandboxes
        self._policies = policies
        self._images = images or TaskImages()
        self._holds = Holds(stores.ledger)

    @activity.defn(name="run_rollout")
    async def run_rollout(self, request: RolloutRequest) -> RolloutOutcome:
        """Plays the rollout to its end, or goes on where the last attempt stopped; a pause holds it between two turns.

        Any error but broken data is infrastructure's: the attempt is retried within its budget, and never scored. The
        budget counts attempts in a row that recorded no turn; one that recorded some has not been in vain.
        """
        facts = await self._stores.run_facts(request.run)
        task = await self._stores.task(request.task)
        renderer = await self._policies.renderer(request.run, facts.recipe)
        attempt = _Attempt(self._stores, self._engines, self._holds, request, facts, task, renderer, self._harnesses)
        if await attempt.is_held():
            return attempt.held()
        stands = await attempt.stands()
        attempt.check_budget(stands, "the last of them ended without a word")
        await attempt.require_engine(stands)
        fold = await attempt.open()
        if fold.ended is None:
            try:
                await attempt.play(fold, self._sandboxes, self._images)
            except Held:
                return attempt.held()
            except PromptTooLong as error:
                raise ApplicationError(str(error), type=FailureKind.DATA.value, non_retryable=True) from error
            except Exception as error:
                attempt.check_budget(await attempt.stands(), str(error))
                raise
        return await attempt.outcome()


class _Attempt:
    """One attempt: holds its place in the stream."""

    def __init__(
        self,
        stores: Stores,
        engines: EnginePool,
        holds: Holds,
        request: RolloutRequest,
        facts: RunFacts,
        task: Task,
        renderer: ChatRenderer,
        harnesses: HarnessHost | None,
    ) -> None:
        self._stores = stores
        self._engines = engines
        self._holds = holds
        self._request = request
        self._recipe = facts.recipe
        self._task = task
        self._renderer = renderer
        self._harnesses = harnesses
        self._stream = rollout_stream(request.run, request.scope, request.prompt, request.sample)
        self._next_seq = 0
        self._epoch = 0
        self._rows: list[TurnPayload] = []

    async def is_held(self) -> bool:
        """Whether a pause forbids to begin: one that drains lets go on what has begun."""
        depth = await self._holds.depth(self._request.run)
        if depth == "drain":
            fold = await self.stands()
            return fold.ended is None and not fold.turns
        return depth == "now"

    async def stands(self) -> RolloutFold:
        """Where the rollout stands."""
        return fold_rollout(await self._stores.ledger.read(self._stream))

    def check_budget(self, fold: RolloutFold, last: str) -> None:
        """Ends the rollout's attempts once its budget is used up.

        Args:
            fold: Where it stands.
            last: How the last attempt ended.

        Raises:
            ApplicationError: it is; not to be tried again.
        """
        budget = self._recipe.failures.rollout_attempts
        if self._request.purpose == "train" and not fold.is_over and fold.fruitless >= budget:
            raise ApplicationError(
                f"{budget} attempts recorded no turn: {last}", type=FailureKind.INFRA.value, non_retryable=True
            )

    async def require_engine(self, fold: RolloutFold) -> None:
        """Gives the place to others, at no cost for the rollout, where there is nothing to do but to wait.

        Raises:
            ApplicationError: no engine is alive; to be tried again soon.
        """
        run = self._request.run
        if not fold.is_over and not await self._engines.any_alive(run):
            raise ApplicationError(
                f"no engine of {run} is alive", type=FailureKind.INFRA.value, next_retry_delay=LOOK_FOR_ENGINE
            )

    def held(self) -> RolloutOutcome:
        """What the group is told of a rollout that a pause holds."""
        return RolloutOutcome(stream=self._stream, held=True)

    async def open(self) -> RolloutFold:
        """Fences every earlier attempt, and says where the rollout stands."""
        while True:
            fold = await self.stands()
            self._next_seq, self._epoch = fold.next_seq, fold.epoch
            if fold.failed is not None:
                raise RolloutClosed(f"{self._stream} was closed without a score; this attempt comes too late")
            if fold.ended is not None:
                return fold
            opened = AttemptOpened(attempt=uuid.uuid4().hex, worker=self._stores.actor, resumed_at=len(fold.turns))
            try:
                await self._append([opened])
            except Fenced:
                continue  # an earlier attempt was still writing: look again, then fence it
            return fold

    async def play(self, fold: RolloutFold, sandboxes: SandboxFactory, images: TaskImages) -> None:
        """Rebuilds the sandbox from the recorded actions and plays on to the end."""
        recorded = await self._recorded_turns(fold)
        for _ in range(MAX_RESTARTS):
            sandbox = await agent_sandbox(self._recipe, self._task, sandboxes, images)
            try:
                await self._play_in(sandbox, recorded)
                return
            except Divergence as divergence:
                await self._start_over(divergence)
                recorded = []
            finally:
                await sandbox.destroy()
        raise RuntimeError(f"{self._stream}: replayed actions differed {MAX_RESTARTS} times: is the task repeatable?")

    async def _play_in(self, sandbox: Sandbox, recorded: list[RecordedTurn]) -> None:
        async def record(turn: Turn, end: StopReason | None) -> None:
            inline: list[bytes] = []
            self._rows.append(turn.recorded.payload)
            await self._record(turn, [] if end is None else await self._ending(sandbox, end, inline), inline)

        if self._recipe.agent.harness is not None:
            await self._play_by_harness(self._recipe.agent.harness, sandbox, recorded)
            return
        tools = tool_set(self._recipe, self._task)
        episode = Episode(self._task, tools, self._renderer, episode_limits(self._recipe))
        await episode.replay(recorded, sandbox)
        self._rows = [turn.payload for turn in recorded]
        end = episode.ended()
        if end is None:
            await episode.play(sandbox, self._sample, record)
        else:  # the recorded turns alone end it
            await self._end(sandbox, end)

    async def _play_by_harness(self, command: tuple[str, ...], sandbox: Sandbox, recorded: list[RecordedTurn]) -> None:
        if self._harnesses is None:
            raise HarnessFailed("this worker runs no harness but our own")
        tools = tool_set(self._recipe, self._task, JSON_CALLS)
        seconds = self._recipe.agent.command_timeout_s
        assert seconds is not None
        rollout = HarnessRollout(
            command=command,
            issue=self._task.issue,
            renderer=self._renderer,
            limits=episode_limits(self._recipe),
            door=SandboxDoor(sandbox, tools, self._task, command_timeout_s=seconds),
            version=self._request.version,
        )
        self._rows = [turn.payload for turn in recorded]
        end = await self._harnesses.play(rollout, recorded, self._sample, self._record_call)
        await self._end(sandbox, end)

    async def _record_call(self, call: RecordedCall) -> None:
        """A call that a harness made, as a turn."""
        recorded = RecordedTurn(call.payload(), call.tree, call.seconds)
        self._rows.append(recorded.payload)
        turn = Turn(call.index, recorded, len(call.prompt_ids), call.sampled, call.waited_s)
        await self._record(turn, [], [])

    async def _end(self, sandbox: Sandbox, end: StopReason) -> None:
        inline: list[bytes] = []
        await self._append(await self._ending(sandbox, end, inline), inline)

    async def outcome(self) -> RolloutOutcome:
        """What the group is told."""
        fold = await self.stands()
        assert fold.ended is not None
        return RolloutOutcome(
            stream=self._stream,
            verdict_key=fold.ended.verdict_key,
            score=None if fold.graded is None else fold.graded.score,
            generated_tokens=fold.ended.generated_tokens,
        )

    async def _recorded_turns(self, fold: RolloutFold) -> list[RecordedTurn]:
        blobs = await self._stores.blobs.get_many([turn.payload for turn in fold.turns])
        return [
            RecordedTurn(TurnPayload.model_validate_json(blobs[turn.payload]), turn.tree, turn.generate_s + turn.tool_s)
            for turn in fold.turns
        ]

    async def _start_over(self, divergence: Divergence) -> None:
        self._epoch += 1
        restarted = RolloutRestarted(
            epoch=self._epoch, turn=divergence.turn, expected=divergence.expected, found=divergence.found
        )
        await self._append([restarted])

    async def _sample(self, context: tuple[int, ...], room: int, turn: int) -> Sampled:
        request, recipe = self._request, self._recipe
        if await self._holds.depth(request.run) == "now":
            raise Held
        settings = recipe.sampling if request.purpose == "train" else recipe.validation
        seed = derive_seed(
            recipe.run.seed,
            "generate",
            scope=request.scope,
            prompt=request.prompt,
            sample=request.sample,
            turn=turn,
        )
        generate = GenerateRequest(
            token_ids=context,
            max_tokens=room,
            temperature=settings.temperature,
            top_p=settings.top_p,
            seed=seed,
            stop_token_ids=self._renderer.stop_token_ids,
            version=request.version,
        )
        return await self._engines.generate(request.run, request.prompt, generate)

    async def _record(self, turn: Turn, ending: Sequence[Event], inline: list[bytes]) -> None:
        payload = turn.recorded.payload
        recorded = TurnRecorded(
            turn=turn.index,
            epoch=self._epoch,
            payload=await self._stores.stage(payload.blob(), inline),
            version=turn.sampled.generation.version,
            prompt_tokens=turn.prompt_tokens,
            generated_tokens=len(payload.token_ids),
            tool=payload.action.tool,
            tree=turn.recorded.tree,
            engine=turn.sampled.engine,
            generate_s=turn.sampled.seconds,
            tool_s=turn.tool_s,
        )
        await self._append([recorded, *ending], inline)

    async def _ending(self, sandbox: Sandbox, end: StopReason, inline: list[bytes]) -> list[Event]:
        """The end, before it the rows where there are several, after it the verdict where the tree was graded before;
        `inline` takes the blobs that they name."""
        tree = await sandbox.tree_digest()
        key = verdict_key(self._task.digest, tree, grader_of(self._task))
        rows = recorded_rows(self._rows)
        listed = [RowsRecorded(epoch=self._epoch, rows=rows)] if len(rows) > 1 else []
        ended = RolloutEnded(
            reason=end,
            epoch=self._epoch,
            turns=len(self._rows),
            generated_tokens=sum(row.generated_tokens for row in rows),
            total_tokens=sum(row.tokens for row in rows),
            content=rollout_content([row.content for row in rows]),
            changed=await self._stores.stage(changed_files_blob(await sandbox.changed_files()), inline),
            tree=tree,
            verdict_key=key,
        )
        graded = await self._known_verdict(key)
        return [*listed, ended] if graded is None else [*listed, ended, graded]

    async def _known_verdict(self, key: str) -> RolloutGraded | None:
        recorded = await self._stores.ledger.read(verdict_stream(key))
        if not recorded:
            return None
        verdict = recorded[0].event
        assert isinstance(verdict, VerdictReached)
        return RolloutGraded(
            verdict_key=key,
            score=verdict.score,
            timed_out=verdict.timed_out,
            verdict_head=recorded[0].envelope.hash,
            reused=True,
        )

    async def _append(self, events: Sequence[Event], blobs: Sequence[bytes] = ()) -> None:
        head = await self._stores.ledger.append(
            self._stream, events, expected_seq=self._next_seq, actor=self._stores.actor, blobs=blobs
        )
        self._next_seq = head.seq + 1
