"""Holds one agent from its start to its end: its clock, its lease, its budgets, its output.

Everything happens in one loop and one thread. What is decided is decided by `_look`, which is called at each event and
at least every `TICK_S`; what cannot wait for it is the kernel's: whatever happens to this process, nothing inside
outlives it.
"""

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable
from pathlib import Path

from stepwell.ptb.supervisor.agent_network import AgentNetwork
from stepwell.ptb.supervisor.cause import Cause, bound_reached
from stepwell.ptb.supervisor.disk import DiskWatch
from stepwell.ptb.supervisor.host_folder import HostFolder, write_lasting, write_whole
from stepwell.ptb.supervisor.host_process import HostProcess
from stepwell.ptb.supervisor.inside import Inside
from stepwell.ptb.supervisor.meter import Meter
from stepwell.ptb.supervisor.order import AgentOrder
from stepwell.ptb.supervisor.output import AgentOutput
from stepwell.ptb.supervisor.records import AgentEnd, AgentStatus, HostLost, Phase
from stepwell.ptb.supervisor.trace import utc_now
from stepwell.ptb.supervisor.work_clock import OVER_FACTOR, Lease, WorkClock
from stepwell.sandbox.frames import ChannelClosed, ChannelCorrupt

TICK_S = 0.1
"""How often lease, clock and orders to stop are looked at."""
WRITE_S = 1.0
"""How often the state and the clock inside are written."""
INSIDE_GONE = "the first process inside is gone: killed for memory, or by this machine's administrator"


class Supervision:
    """One agent under its order.

    Args:
        order: What runs.
        folder: Laid out; receives what there is to say.
        environment: Of the agent's commands, secrets with it.
        inside: The sandbox, ready.
        own: This process.
    """

    def __init__(
        self, order: AgentOrder, folder: HostFolder, environment: dict[str, str], inside: Inside, own: HostProcess
    ) -> None:
        now = time.monotonic()
        self._order = order
        self._folder = folder
        self._environment = environment
        self._inside = inside
        self._own = own
        self._clock = WorkClock(order.budget.time_s, now)
        self._lease = Lease(order.lease_s, now)
        self._lease_seen = folder.lease.stat().st_mtime_ns
        self._meter = Meter(order.usage, order.limit_rules, order.prices)
        agents = (Path(order.work), Path(order.home or folder.home), folder.tmp)
        self._disk = DiskWatch([*agents, folder.trace, folder.usage, folder.network])
        self._woken = asyncio.Event()
        self._output = AgentOutput(folder, self._meter, self._woken.set, self._fail)
        self._network = AgentNetwork(order.network, folder.network, self._fail)
        self._phase: Phase = "starting"
        self._exit_status: int | None = None
        self._has_exited = False
        self._is_empty = False
        self._terminated = 0.0
        self._cause: Cause | None = None
        self._lost: str | None = None
        self._failed: OSError | None = None
        self._limits_before = 0
        self._prompts = 0
        self._freezes = 0
        self._writes = 0
        self._written = now
        self._over = now
        self._started = utc_now()

    async def run(self, on_ready: Callable[[], None]) -> None:
        """Returns when the agent has ended and nothing of it is left; then `conclude` writes down how.

        Args:
            on_ready: Called when the agent's clock has begun.

        Raises:
            OSError: the disk is full, or failed; the agent is dead then too.
            SandboxError: the kernel does not take the sandbox down.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._lose, f"the supervisor was told to end by signal {number.value}")
        self._inside.on_exit, self._inside.on_empty = self._note_exit, self._note_empty
        hearing = asyncio.create_task(self._hear())
        self._output.attach(self._inside.stdout, "stdout")
        self._output.attach(self._inside.stderr, "stderr")
        try:
            await self._network.serve(self._inside.listening)
            await self._prompt(self._order.argv, self._order.stdin)
            on_ready()
            while self._phase != "ended":
                await self._wait()
                await self._look()
        except ChannelClosed:
            self._lose(INSIDE_GONE)
        finally:
            await self._inside.kill()
            self._over = time.monotonic()
            await self._network.close()
            await hearing
            await self._disk.close()
            self._output.finish()
            self._inside.close()

    async def _wait(self) -> None:
        """For something to happen, a tick at most."""
        left_s = self._clock.remaining_s(time.monotonic()) if self._phase == "working" else TICK_S
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(TICK_S, left_s)):
                await self._woken.wait()
        self._woken.clear()

    async def _look(self) -> None:
        if self._failed is not None:
            raise self._failed
        now = time.monotonic()
        renewed = self._renewal(now)
        if self._lost is not None:
            self._phase = "ended"
        elif self._phase == "working":
            await self._look_at_work(now)
        elif self._phase == "frozen":
            await self._look_at_ice(now, renewed=renewed)
        elif self._is_empty or now - self._terminated >= self._order.budget.grace_s:
            self._phase = "ended"
        if now - self._written >= WRITE_S:
            self._write(now)

    async def _look_at_work(self, now: float) -> None:
        spent = bound_reached(self._order, self._clock.remaining_s(now), self._meter.used(), self._disk.used_bytes)
        if self._folder.stop.exists():
            await self._terminate(Cause("stopped", self._folder.stop.read_text(encoding="utf-8")))
        elif self._has_exited:
            await self._after_exit(now, may_go_on=spent is None)
        elif spent is not None:
            await self._terminate(spent)
        elif self._lease.state(now) != "held":
            await self._inside.freeze()
            now = time.monotonic()
            self._clock.stand(now)
            self._freezes += 1
            self._enter("frozen", now)
        else:
            self._disk.look(now)

    async def _look_at_ice(self, now: float, *, renewed: bool) -> None:
        if self._folder.stop.exists():
            self._clock.run(now)
            await self._terminate(Cause("stopped", self._folder.stop.read_text(encoding="utf-8")))
        elif renewed:
            self._clock.run(now)
            await self._inside.thaw()
            self._enter("working", now)
        elif self._lease.state(now) == "over":
            self._lose(f"nobody renewed the lease for {OVER_FACTOR * self._order.lease_s:.0f} s")

    async def _after_exit(self, now: float, *, may_go_on: bool) -> None:
        """The command has ended: another prompt, or the end."""
        self._output.drain()  # the last line may tell of a limit
        status, again = self._exit_status, self._order.reprompt
        remaining_s = self._clock.remaining_s(now)
        met_a_limit = len(self._meter.limits) > self._limits_before
        wants_more = again is not None and self._prompts < again.most and remaining_s >= again.least_remaining_s
        if again is not None and wants_more and may_go_on and status == 0 and not met_a_limit:
            hours, minutes = divmod(int(remaining_s // 60), 60)
            text = again.text.replace("{hours}", str(hours)).replace("{minutes}", str(minutes))
            await self._prompt(tuple(part.replace("{text}", text) for part in again.argv), "")
            return
        words = f"was ended by signal {-status}" if status is not None and status < 0 else f"exited with {status}"
        self._cause = Cause("itself" if status == 0 else "crash", f"its command {words}")
        self._phase = "ended"

    async def _prompt(self, argv: tuple[str, ...], stdin: str) -> None:
        self._has_exited = False
        self._prompts += 1
        self._meter.begin_prompt()
        self._limits_before = len(self._meter.limits)
        if self._prompts == 1:
            self._started = utc_now()
            self._clock = WorkClock(self._order.budget.time_s, time.monotonic())
        await self._inside.run(argv, self._environment, stdin.encode())
        now = time.monotonic()
        self._clock.run(now)
        self._enter("working", now)

    async def _terminate(self, cause: Cause) -> None:
        self._cause = cause
        self._terminated = time.monotonic()
        await self._inside.terminate()
        self._enter("ending", self._terminated)

    def _renewal(self, now: float) -> bool:
        """Whether somebody renewed the lease since the last look."""
        changed = self._folder.lease.stat().st_mtime_ns
        if changed == self._lease_seen:
            return False
        self._lease_seen = changed
        self._lease.renew(now)
        return True

    async def _hear(self) -> None:
        try:
            await self._inside.listen()
        except ChannelCorrupt as error:
            self._lose(f"the first process inside says what it never does: {error}")
        if self._cause is None:
            self._lose(INSIDE_GONE)

    def _note_exit(self, status: int) -> None:
        self._exit_status, self._has_exited = status, True
        self._woken.set()

    def _note_empty(self) -> None:
        self._is_empty = True
        self._woken.set()

    def _lose(self, reason: str) -> None:
        if self._lost is None:
            self._lost = reason
        self._woken.set()

    def _fail(self, error: OSError) -> None:
        self._failed = error
        self._woken.set()

    def _enter(self, phase: Phase, now: float) -> None:
        self._phase = phase
        self._write(now)

    def _write(self, now: float) -> None:
        self._writes += 1
        self._written = now
        used = self._meter.used()
        remaining_s = self._clock.remaining_s(now)
        status = AgentStatus(
            supervisor=self._own,
            phase=self._phase,
            started=self._started,
            worked_s=self._clock.worked_s(now),
            remaining_s=remaining_s,
            tokens=used.tokens,
            money=used.cost,
            prompts=self._prompts,
            last_output=self._output.last_line,
            freezes=self._freezes,
            bounded_by="group" if self._inside.bounded else "nothing",
            writes=self._writes,
        )
        write_whole(self._folder.state, status.model_dump_json(indent=1))
        write_whole(self._folder.remaining, f"{int(remaining_s)}\n")

    def conclude(self) -> None:
        """Writes the end, or why there is none.

        Raises:
            OSError: the disk is full, or failed.
        """
        now = self._over
        self._phase = "ended"
        self._write(now)
        if self._lost is not None or self._cause is None:
            reason = self._lost or "the supervisor ended it without a reason"
            lost = HostLost(reason=reason, when=utc_now(), worked_s=self._clock.worked_s(now))
            write_lasting(self._folder.lost, lost.model_dump_json(indent=1))
        else:
            used = self._meter.used()
            end = AgentEnd(
                ended=self._cause.ended,
                detail=self._cause.detail,
                exit_status=self._exit_status if self._has_exited else None,
                started=self._started,
                when=utc_now(),
                worked_s=self._clock.worked_s(now),
                frozen_s=self._clock.stood_s(now),
                prompts=self._prompts,
                tokens=used.tokens,
                tokens_input=used.input,
                tokens_output=used.output,
                tokens_cached=used.cached,
                money=used.cost,
                limits=tuple(self._meter.limits),
                trace=str(self._folder.trace),
                network_log=str(self._folder.network),
                usage_log=str(self._folder.usage),
            )
            write_lasting(self._folder.end, end.model_dump_json(indent=1))
