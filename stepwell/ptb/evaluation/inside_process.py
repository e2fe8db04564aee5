"""The process inside, from outside: started in its sandbox, asked, and ended whatever it does."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from pydantic import ValidationError

from stepwell.ptb.evaluation.order import EngineSettings, EvaluationLimits
from stepwell.ptb.evaluation.result import Answer
from stepwell.ptb.evaluation.sandbox import inside_command
from stepwell.ptb.evaluation.wire import (
    MOST_LINE_BYTES,
    SAID,
    Alive,
    Answers,
    Ask,
    CannotAnswer,
    Question,
    Ready,
    Said,
    Setup,
)
from stepwell.sandbox.cgroups import Cgroup, Cgroups, GroupLimits
from stepwell.sandbox.folders import remove_tree

_TAIL_BYTES = 8192
"""Kept of what the process inside prints, which is no word of ours."""
_PROCESSES = 1024
_END_S = 10.0


class Died(Exception):
    """The process inside ended or fell silent before it had answered: the reason, as far as it can be seen."""


class NoAnswers(Exception):
    """The process inside says that this model gives no answers, and why."""


def _unheard(tokens: int) -> None:
    del tokens


class InsideProcess:
    """One process inside; an asynchronous context.

    Args:
        files: Of the model, by their names inside.
        folder: For what the sandbox needs; emptied at the start and removed at the end.
        setup: How to answer.
        limits: Of the sandbox.
    """

    def __init__(
        self,
        files: Mapping[str, Path],
        folder: Path,
        setup: Setup,
        limits: EvaluationLimits,
    ) -> None:
        self._files = files
        self._folder = folder
        self._setup = setup
        self._limits = limits
        self._group: Cgroup | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._draining: asyncio.Task[None] | None = None
        self._tail = bytearray()
        self.environment: dict[str, str] = {}
        """Numeric environment of its answers."""
        self.beat: Callable[[int], None] = _unheard
        """Is called with the number of tokens of the batch every few seconds."""

    async def __aenter__(self) -> "InsideProcess":
        """Starts it, and waits until the model is loaded.

        Raises:
            Died, NoAnswers: see there.
            SandboxError: there can be no sandbox.
        """
        try:
            command = await asyncio.to_thread(self._prepare, self._setup.engine)
            # Not in another thread: the sandbox ends with the thread that started it.
            self._process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={},
                limit=MOST_LINE_BYTES,
                start_new_session=True,
            )
            self._draining = asyncio.create_task(self._drain(self._process))
            await self._send(self._setup.model_dump_json())
            said = await self._hear()
            if not isinstance(said, Ready):
                raise Died(f"it said {said.kind!r} before it was ready")
            self.environment = said.environment
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    async def ask(self, questions: Sequence[Question]) -> tuple[Answer, ...]:
        """Answers to one batch, in order.

        Raises:
            Died, NoAnswers: see there.
        """
        await self._send(Ask(questions=tuple(questions)).model_dump_json())
        said = await self._hear()
        if not isinstance(said, Answers) or len(said.answers) != len(questions):
            raise Died(f"it gave no {len(questions)} answers to as many questions")
        return said.answers

    def _prepare(self, engine: EngineSettings) -> list[str]:
        remove_tree(self._folder)
        self._folder.mkdir(parents=True)
        cgroups = Cgroups.find()
        if cgroups is not None:
            self._group = cgroups.make(GroupLimits(self._limits.memory_bytes, _PROCESSES))
        return inside_command(self._files, self._folder, engine, self._group.folders if self._group else ())

    async def _send(self, line: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
            await self._process.stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has ended: what it said before tells why

    async def _hear(self) -> Said:
        """The next word that is more than a sign of life."""
        assert self._process is not None
        assert self._process.stdout is not None
        while True:
            try:
                async with asyncio.timeout(self._limits.silence_s):
                    line = await self._process.stdout.readline()
            except TimeoutError as error:
                raise Died(f"it was silent for {self._limits.silence_s:g} s") from error
            except ValueError as error:
                raise Died(f"it said a line of over {MOST_LINE_BYTES} bytes") from error
            if not line.endswith(b"\n"):
                raise Died(await self._ending(self._process))
            try:
                said = SAID.validate_json(line)
            except ValidationError as error:
                raise Died("it said what is no word of the protocol") from error
            if isinstance(said, CannotAnswer):
                raise NoAnswers(said.why)
            if not isinstance(said, Alive):
                return said
            self.beat(said.tokens)

    async def _ending(self, process: asyncio.subprocess.Process) -> str:
        """How it ended by itself, and the last that it printed."""
        try:
            async with asyncio.timeout(_END_S):
                status = await process.wait()
                if self._draining is not None:
                    await asyncio.shield(self._draining)
        except TimeoutError:
            return "it closed its output"
        lines = bytes(self._tail).decode(errors="replace").split("\n")
        printed = [line.strip() for line in lines if line.strip()]
        return f"it ended with status {status}" + (f": {printed[-1][:300]}" if printed else "")

    async def _drain(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while chunk := await process.stderr.read(1 << 16):
            self._tail += chunk
            del self._tail[:-_TAIL_BYTES]

    async def _end(self) -> None:
        """Kills everything inside, and removes the folder."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()  # bwrap; what is inside dies with it
            await self._process.wait()
        if self._draining is not None:
            await asyncio.gather(self._draining, return_exceptions=True)
        if self._group is not None:
            await asyncio.to_thread(self._group.remove)
        await asyncio.to_thread(remove_tree, self._folder)
