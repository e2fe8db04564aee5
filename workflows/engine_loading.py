"""Bringing every live engine to a weight version."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError

from stepwell.contracts.engine import Attestation, EngineRef, LoadRequest
from stepwell.contracts.run import RunRef
from workflows.contracts import LIST_ENGINES, LOAD_WEIGHTS
from workflows.run_state import RunState

LOOK_AGAIN, LOOK_AGAIN_AT_LAST = timedelta(seconds=2), timedelta(minutes=1)
"""How often engines are looked for while there is none: at first, and at last. A look is nine events of the history."""
PATIENCE = 10
"""A pause between two looks is as long as the wait so far over this."""
LATE = timedelta(seconds=10)
"""How long the engines that are not the first to attest a version are waited for."""


async def load_on_all(run: str, version: int, state: RunState, show: Callable[[], None]) -> None:
    """Returns when at least one engine has attested the version, and the others were given a little longer.

    A later one takes traffic when it has attested: rollouts ask for the version by number. One that failed, or comes
    back, loads by itself what the others serve.
    """
    if state.serving == version and state.engines:
        return
    began = workflow.now()
    while True:
        state.wait(f"engines to load version {version}")
        show()
        listed = await LIST_ENGINES(RunRef(run=run))
        serving = await _first_and_soon(run, version, listed.engines)
        if serving:
            state.serving = version
            state.engines = serving
            return
        state.wait(f"an engine (none is alive for version {version})")
        show()
        await workflow.sleep(min(max(LOOK_AGAIN, (workflow.now() - began) / PATIENCE), LOOK_AGAIN_AT_LAST))


async def _first_and_soon(run: str, version: int, engines: Sequence[EngineRef]) -> tuple[str, ...]:
    """Engines that attested the version; empty if all failed. One that hangs holds up nobody for long."""
    loads = [asyncio.create_task(_load(run, version, engine)) for engine in engines]
    pending = loads
    while pending and not _attested(loads):
        _, pending = await workflow.wait(pending, return_when=asyncio.FIRST_COMPLETED)
    if pending:
        await workflow.wait(pending, timeout=LATE.total_seconds())
    return _attested(loads)


def _attested(loads: "Sequence[asyncio.Task[Attestation | None]]") -> tuple[str, ...]:
    answers = [load.result() for load in loads if load.done()]
    return tuple(answer.engine for answer in answers if answer is not None)


async def _load(run: str, version: int, engine: EngineRef) -> Attestation | None:
    try:
        return await LOAD_WEIGHTS(LoadRequest(run=run, version=version), queue=engine.queue, summary=engine.engine)
    except ActivityError as error:
        workflow.logger.warning("engine %s did not load version %d: %s", engine.engine, version, error.cause or error)
        return None
