"""Bringing every live engine to a weight version."""

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError

from stepwell.contracts.engine import Attestation, EngineRef, LoadRequest
from stepwell.contracts.run import RunRef
from workflows.contracts import LIST_ENGINES, LOAD_WEIGHTS
from workflows.run_state import RunState

LOOK_AGAIN = timedelta(seconds=2)
"""How often engines are looked for while there is none."""


async def load_on_all(run: str, version: int, state: RunState) -> None:
    """Returns when at least one engine has attested the version and every other live one was asked for it.

    An engine that does not answer has no traffic: rollouts ask for the version by number. It loads what its run serves
    when it comes back.
    """
    if state.serving == version and state.engines:
        return
    while True:
        state.wait(f"engines to load version {version}")
        listed = await LIST_ENGINES(RunRef(run=run))
        attested = await asyncio.gather(*(_load(run, version, engine) for engine in listed.engines))
        serving = [answer.engine for answer in attested if answer is not None]
        if serving:
            state.serving = version
            state.engines = tuple(serving)
            return
        state.wait(f"an engine (none is alive for version {version})")
        await workflow.sleep(LOOK_AGAIN)


async def _load(run: str, version: int, engine: EngineRef) -> Attestation | None:
    try:
        return await LOAD_WEIGHTS(LoadRequest(run=run, version=version), queue=engine.queue, summary=engine.engine)
    except ActivityError as error:
        workflow.logger.warning("engine %s did not load version %d: %s", engine.engine, version, error.cause or error)
        return None
