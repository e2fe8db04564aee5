"""Activities of the control worker on `run/<run>`: fold, dispatch, complete, finish; the engines' leases."""

from collections.abc import Sequence

from temporalio import activity

from activities.adoption import adopt
from activities.folds import fold_run_streams
from activities.seals import Sealer
from activities.stores import Stores
from db.engines import Engines
from db.recorded import Recorded
from stepwell.contracts.engine import EngineList, EngineRef
from stepwell.contracts.run import (
    CompleteRequest,
    Dispatch,
    DispatchRequest,
    FinishRequest,
    PromptRef,
    Replacements,
    RunFold,
    RunRef,
    StepRef,
    VersionRef,
)
from stepwell.events import GroupClosed, PromptReplaced, RunFinished, StepCompleted, StepDispatched
from stepwell.events.group_closed import Fate
from stepwell.events.streams import operator_stream, prompt_stream, run_stream

REPLACEABLE = (Fate.QUARANTINED, Fate.ABANDONED)
"""Fates for which a prompt is replaced; one that an operator skipped is not."""


class RunActivities:
    """Implements what `TrainingRun` asks of the ledger."""

    def __init__(self, stores: Stores, engines: Engines, sealer: Sealer) -> None:
        self._stores = stores
        self._engines = engines
        self._sealer = sealer

    @activity.defn(name="fold_run")
    async def fold_run(self, request: RunRef) -> RunFold:
        """Where the run stands; before anything else, its key is declared."""
        await self._sealer.declare(request.run)
        run, operator = run_stream(request.run), operator_stream(request.run)
        streams = await self._stores.ledger.read_many([run, operator])
        return fold_run_streams(streams[run], streams[operator], await self._stores.weights(request.run))

    @activity.defn(name="dispatch_step")
    async def dispatch_step(self, request: DispatchRequest) -> Dispatch:
        """Records the prompts of a step, once; returns those, and their replacements, whose group is not closed."""
        facts = await self._stores.run_facts(request.run)
        entries = facts.manifest.step(request.step, facts.recipe.run.prompts_per_step)
        await self._stores.append_next(
            run_stream(request.run),
            StepDispatched(
                step=request.step,
                version=request.version,
                tasks=[entry.blob for entry in entries],
                settings=request.settings,
            ),
        )
        if facts.fork is not None:
            await adopt(self._stores, request.run, facts.fork, request.step)
        prompts = [PromptRef(prompt=index, task=entry.blob) for index, entry in enumerate(entries)]
        prompts += [
            PromptRef(prompt=replaced.prompt, task=replaced.task)
            for replaced in await self._replaced(request.run)
            if replaced.step == request.step
        ]
        return await open_prompts(self._stores, request.run, str(request.step), prompts)

    @activity.defn(name="replace_prompts")
    async def replace_prompts(self, request: StepRef) -> Replacements:
        """Puts a prompt of the reserve in the place of each that failed, while there is one; tells what can be trained.

        Raises:
            RuntimeError: a prompt that was dispatched has no fate yet.
        """
        stores, run, step = self._stores, request.run, request.step
        facts = await stores.run_facts(run)
        replaced = await self._replaced(run)
        of_step = [each for each in replaced if each.step == step]
        prompts = facts.recipe.run.prompts_per_step + len(of_step)
        names = [prompt_stream(run, str(step), prompt) for prompt in range(prompts)]
        streams = await stores.ledger.read_many(names)
        replacing = [prompt_stream(run, str(step), each.prompt) for each in of_step]
        if under_way := [name for name in replacing if not _is_closed(streams[name])]:
            # Asked again after a crash: they were added, and the workflow was not told.
            return Replacements(added=len(under_way), trained=0, failed=())
        closed = [_closing(name, streams[name]) for name in names]
        failed = [prompt for prompt, closing in enumerate(closed) if closing.fate in REPLACEABLE]
        unreplaced = [prompt for prompt in failed if all(each.replaces != prompt for each in of_step)]
        reserve = facts.manifest.reserve[len(replaced) :]
        for offset, (prompt, entry) in enumerate(zip(unreplaced, reserve, strict=False)):
            event = PromptReplaced(step=step, prompt=prompts + offset, replaces=prompt, task=entry.blob)
            await stores.append_next(run_stream(run), event)
        return Replacements(
            added=min(len(unreplaced), len(reserve)),
            trained=sum(closing.fate is Fate.TRAINED for closing in closed),
            failed=tuple(f"prompt {prompt}: {closed[prompt].fate.value}, {closed[prompt].cause}" for prompt in failed),
        )

    async def _replaced(self, run: str) -> list[PromptReplaced]:
        """Every prompt of the reserve that was used, in order."""
        events = [recorded.event for recorded in await self._stores.ledger.read(run_stream(run))]
        return [event for event in events if isinstance(event, PromptReplaced)]

    @activity.defn(name="complete_step")
    async def complete_step(self, request: CompleteRequest) -> VersionRef:
        """Records that the trainer made a version, and signs what stands."""
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
        await self._sealer.sign(request.run, str(request.step))
        return made

    @activity.defn(name="finish_run")
    async def finish_run(self, request: FinishRequest) -> RunRef:
        """Closes the run's stream, and signs what stands."""
        await self._stores.append_next(
            run_stream(request.run), RunFinished(end=request.end, version=request.version, cause=request.cause)
        )
        await self._sealer.sign(request.run, "finished")
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
    closed = {name for name, stream in streams.items() if _is_closed(stream)}
    return Dispatch(
        scope=scope,
        open=tuple(prompt for name, prompt in names.items() if name not in closed),
        closed=len(closed),
    )


def _closing(name: str, stream: Sequence[Recorded]) -> GroupClosed:
    closing = next((each.event for each in stream if isinstance(each.event, GroupClosed)), None)
    if closing is None:
        raise RuntimeError(f"{name} has no fate yet: nothing is replaced before the whole step is closed")
    return closing


def _is_closed(stream: Sequence[Recorded]) -> bool:
    return bool(stream) and isinstance(stream[-1].event, GroupClosed)
