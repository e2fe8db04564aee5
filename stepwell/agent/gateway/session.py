"""One rollout's side of the gateway: bounds, retries, and the record, which is durable before an answer is given."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from stepwell.agent.chat import ChatRenderer
from stepwell.agent.episode import Divergence, EpisodeLimits, Sample, Sampled
from stepwell.agent.gateway.conversation import ChatRequest
from stepwell.agent.gateway.record import CallRecord, RecordedCall
from stepwell.agent.gateway.refusals import over, too_long, unavailable, unknown_token, used_up
from stepwell.agent.gateway.replay import Replay
from stepwell.agent.protocol import StopReason
from stepwell.agent.turn import RecordedTurn
from stepwell.policy.protocol import EngineError, WrongVersion

Record = Callable[[RecordedCall], Awaitable[None]]
"""Stores a call; returns when it is durable."""
Tree = Callable[[], Awaitable[str]]
"""Digest of a work tree."""


@dataclass
class GatewaySession:
    """A rollout that a harness plays. Calls are answered one after the other, so that each has an index.

    Attributes:
        renderer: Chat format and tokenizer of the policy.
        limits: Bounds; `stop_when_stuck` is the harness's own affair.
        sample: Generates, with the recipe's settings.
        record: Stores each call before it is answered.
        tree: Digest of the rollout's work tree as it is.
        recorded: Turns that a former attempt recorded. A harness that is started anew is answered from them, and
            nothing is sampled, as long as it asks the same in the same tree.
        version: Weight version that the rollout is made by.
    """

    renderer: ChatRenderer
    limits: EpisodeLimits
    sample: Sample
    record: Record
    tree: Tree
    recorded: Sequence[RecordedTurn] = ()
    version: int = 0
    clock_s: float = 0.0
    """Sum of the recorded calls' time."""
    over: StopReason | None = None
    """The bound that refused the last call; None after a call that was answered."""
    diverged: "asyncio.Future[Divergence]" = field(init=False)
    """What a harness that was started anew did otherwise than before; then it is answered no more."""
    _calls: CallRecord = field(init=False)
    _replay: Replay = field(init=False)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _running: dict[tuple[tuple[int, ...], int], "asyncio.Task[RecordedCall]"] = field(
        default_factory=dict[tuple[tuple[int, ...], int], "asyncio.Task[RecordedCall]"]
    )
    _answered_at: float = field(default_factory=time.monotonic)
    _closed: bool = False

    def __post_init__(self) -> None:
        self._calls = CallRecord(self.renderer)
        self._replay = Replay(self.recorded, self.version)
        self.diverged = asyncio.get_running_loop().create_future()

    @property
    def calls(self) -> tuple[RecordedCall, ...]:
        """The recorded calls, in order."""
        return tuple(self._calls.calls)

    @property
    def rows(self) -> tuple[RecordedCall, ...]:
        """The last call of each row of tokens."""
        return tuple(self._calls.rows())

    @property
    def asks_less(self) -> bool:
        """Whether recorded turns are left that a harness which was started anew did not ask for."""
        return self._replay.left

    async def answer(self, request: ChatRequest) -> RecordedCall:
        """Answers from the record, or samples, records and answers. A client that goes away before its answer finds it
        when it asks again.

        Raises:
            Refused: a bound was reached, the session is over, or no engine answered.
        """
        arrived = time.monotonic()
        prompt_ids = self._calls.prompt_ids(request)
        key = (prompt_ids, request.position)
        if key not in self._running:
            recorded = self._calls.answered(*key)
            if recorded is not None:
                return recorded
            self._running[key] = asyncio.create_task(self._generate(request, prompt_ids, arrived))
            self._running[key].add_done_callback(lambda done: self._forget(key, done))
        try:
            return await asyncio.shield(self._running[key])
        except asyncio.CancelledError:
            if self._closed:
                raise unknown_token() from None
            raise

    async def close(self) -> StopReason:
        """Answers no more; gives up what is being generated. Why the rollout ended: the bound that its last call was
        refused for, else its harness was done."""
        self._closed = True
        running = list(self._running.values())
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
        return self.over or StopReason.FINISHED

    async def _generate(self, request: ChatRequest, prompt_ids: tuple[int, ...], arrived: float) -> RecordedCall:
        async with self._lock:
            recorded = self._calls.answered(prompt_ids, request.position)
            if recorded is not None:
                return recorded
            tree = await self.tree()
            if self._replay.left:
                sampled, waited_s = self._replayed(prompt_ids, tree), 0.0
                call = self._calls.place(request, prompt_ids, sampled, tree=tree, waited_s=waited_s)
            else:
                self._check(len(prompt_ids))
                waited_s = max(0.0, arrived - self._answered_at)
                sampled = await self._sampled(prompt_ids)
                call = self._calls.place(request, prompt_ids, sampled, tree=tree, waited_s=waited_s)
                try:
                    await self.record(call)
                except EngineError as error:
                    raise unavailable(f"the call could not be recorded: {error}") from error
            self._calls.keep(call)
            self.clock_s += call.seconds
            self.over = None
            self._answered_at = time.monotonic()
            return call

    async def _sampled(self, prompt_ids: tuple[int, ...]) -> Sampled:
        room = min(self.limits.max_turn_tokens, self.limits.max_context_tokens - len(prompt_ids))
        try:
            return await self.sample(prompt_ids, room, len(self._calls.calls))
        except (EngineError, WrongVersion) as error:
            raise unavailable(f"no engine answered: {error}") from error

    def _replayed(self, prompt_ids: tuple[int, ...], tree: str) -> Sampled:
        """What was sampled before. Raises Refused if the harness did something else."""
        try:
            return self._replay.take(prompt_ids, tree)
        except Divergence as divergence:
            if not self.diverged.done():
                self.diverged.set_result(divergence)
            raise over(f"the harness did something else than before: {divergence}") from divergence

    def _forget(self, key: tuple[tuple[int, ...], int], done: "asyncio.Task[RecordedCall]") -> None:
        del self._running[key]
        if not done.cancelled():
            done.exception()  # Looked at, whether or not a client still waits for it.

    def _check(self, prompt_tokens: int) -> None:
        """Raises Refused if a bound is reached, and notes which."""
        limits = self.limits
        if len(self._calls.calls) >= limits.max_turns:
            self.over = StopReason.TURNS
            raise used_up("turns_used_up", f"the rollout has had its {limits.max_turns} turns")
        if self.clock_s >= limits.wall_clock_s:
            self.over = StopReason.WALL_CLOCK
            raise used_up("wall_clock_used_up", f"the rollout has had its {limits.wall_clock_s:g} s")
        if prompt_tokens >= limits.max_context_tokens:
            self.over = StopReason.CONTEXT
            raise too_long(prompt_tokens, limits.max_context_tokens)
