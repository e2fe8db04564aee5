"""Activities of the control worker on `run/<run>`: fold, dispatch, complete, finish; the engines' leases."""

from temporalio import activity

from activities.folds import fold_run_streams
from activities.stores import Stores
from db.engines import Engines
from stepwell.contracts.engine import EngineList, EngineRef
from stepwell.contracts.run import (
    CompleteRequest,
    Dispatch,
    DispatchRequest,
    FinishRequest,
    PromptRef,
    RunFold,
    RunRef,
    VersionRef,
)
from stepwell.events import GroupClosed, RunFinished, StepCompleted, StepDispatched
from stepwell.events.streams import operator_stream, prompt_stream, run_stream, weights_stream


class RunActivities:
    """Implements what `TrainingRun` asks of the ledger."""

    def __init__(self, stores: Stores, engines: Engines) -> None:
        self._stores = stores
        self._engines = engines

    @activity.defn(name="fold_run")
    async def fold_run(self, request: RunRef) -> RunFold:
        """Where the run stands."""
        names = (run_stream(request.run), operator_stream(request.run), weights_stream(request.run))
        streams = await self._stores.ledger.read_many(names)
        return fold_run_streams(*(streams.get(name, []) for name in names))

    @activity.defn(name="dispatch_step")
    async def dispatch_step(self, request: DispatchRequest) -> Dispatch:
        """Records the prompts of a step, once; returns those whose group is not closed."""
        facts = await self._stores.run_facts(request.run)
        entries = facts.manifest.step(request.step, facts.recipe.run.prompts_per_step)
        await self._stores.append_next(
            run_stream(request.run),
            StepDispatched(step=request.step, version=request.version, tasks=[entry.blob for entry in entries]),
        )
        prompts = [PromptRef(prompt=index, task=entry.blob) for index, entry in enumerate(entries)]
        return await open_prompts(self._stores, request.run, str(request.step), prompts)

    @activity.defn(name="complete_step")
    async def complete_step(self, request: CompleteRequest) -> VersionRef:
        """Records that the trainer made a version."""
        made = request.made
        await self._stores.append_next(
            run_stream(request.run),
            StepCompleted(
                step=request.step,
                version=made.version,
                weights_digest=made.weights_digest,
                weights_seq=made.seq,
                weights_head=made.head,
            ),
        )
        return made

    @activity.defn(name="finish_run")
    async def finish_run(self, request: FinishRequest) -> RunRef:
        """Closes the run's stream."""
        await self._stores.append_next(
            run_stream(request.run), RunFinished(end=request.end, version=request.version, cause=request.cause)
        )
        return RunRef(run=request.run)

    @activity.defn(name="list_engines")
    async def list_engines(self, request: RunRef) -> EngineList:
        """Engines whose lease is alive."""
        live = await self._engines.live(request.run)
        refs = [EngineRef(engine=lease.engine_id, queue=lease.queue) for lease in live]
        return EngineList(engines=tuple(sorted(refs, key=lambda ref: ref.engine)))


async def open_prompts(stores: Stores, run: str, scope: str, prompts: list[PromptRef]) -> Dispatch:
    """Of some prompts, those whose group is not closed."""
    names = {prompt_stream(run, scope, prompt.prompt): prompt for prompt in prompts}
    streams = await stores.ledger.read_many(list(names))
    closed = {name for name, stream in streams.items() if stream and isinstance(stream[-1].event, GroupClosed)}
    return Dispatch(
        scope=scope,
        open=tuple(prompt for name, prompt in names.items() if name not in closed),
        closed=len(closed),
    )
