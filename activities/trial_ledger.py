"""Activities on the streams of run sets and trials alone: where they stand, starts again, records, ends."""

from temporalio import activity

from activities.trial_streams import TrialStreams
from db.errors import Fenced
from stepwell.contracts.trial import (
    AbandonRequest,
    RestartRequest,
    RunSetRef,
    RunSetStanding,
    TrialRef,
    TrialStanding,
)
from stepwell.events import AgentRestarted, RunSetFinished, TrialAbandoned, TrialCreated, TrialScored
from stepwell.events.base import facts_digest
from stepwell.events.children import ChildHead, Commitment, commitment_blob, facts_of_children
from stepwell.events.streams import run_set_stream, trial_stream
from stepwell.ptb.leaderboard.records import Basis
from stepwell.ptb.trials.results import record_of


class UnfinishedRunSet(RuntimeError):
    """A trial of a run set that was to be finished has no record."""


class TrialLedgerActivities:
    """Folds and appends."""

    def __init__(self, streams: TrialStreams) -> None:
        self._streams = streams
        self._stores = streams.stores

    @activity.defn(name="fold_run_set")
    async def fold_run_set(self, request: RunSetRef) -> RunSetStanding:
        """Which trials have a record."""
        facts = await self._streams.run_set(request.run_set)
        recorded = await self._stores.ledger.read_many(
            [run_set_stream(request.run_set), *(trial_stream(request.run_set, cell) for cell in facts.created.cells)]
        )
        scored = {name for name, events in recorded.items() if any(isinstance(e.event, TrialScored) for e in events)}
        finished = any(isinstance(e.event, RunSetFinished) for e in recorded[run_set_stream(request.run_set)])
        open_cells = [cell for cell in facts.created.cells if trial_stream(request.run_set, cell) not in scored]
        return RunSetStanding(open=tuple(open_cells), scored=len(scored), finished=finished)

    @activity.defn(name="finish_run_set")
    async def finish_run_set(self, request: RunSetRef) -> RunSetRef:
        """Closes the run set's stream over the heads of its trials.

        Raises:
            UnfinishedRunSet: a trial has no record.
        """
        facts = await self._streams.run_set(request.run_set)
        names = [trial_stream(request.run_set, cell) for cell in facts.created.cells]
        recorded = await self._stores.ledger.read_many(names)
        children: list[ChildHead] = []
        for name in names:
            events = recorded[name]
            if not events or not isinstance(events[-1].event, TrialScored):
                raise UnfinishedRunSet(f"{name} has no record: a run set is finished when all its trials have one")
            digest = facts_digest([each.event for each in events])
            children.append(ChildHead(stream=name, seq=events[-1].seq, head=events[-1].envelope.hash, facts=digest))
        heads = await self._stores.blobs.put(commitment_blob(children))
        commitment = Commitment(count=len(children), heads=heads.digest, facts=facts_of_children(children))
        await self._stores.append_next(
            run_set_stream(request.run_set), RunSetFinished(scored=len(children), heads=commitment)
        )
        return request

    @activity.defn(name="fold_trial")
    async def fold_trial(self, request: TrialRef) -> TrialStanding:
        """Where a trial stands; it begins with this, if it has not."""
        facts = await self._streams.run_set(request.run_set)
        await self._begin(request)
        fold = await self._streams.fold(request.run_set, request.cell)
        return fold.standing(facts.recipe.failures.host_restarts)

    async def _begin(self, request: TrialRef) -> None:
        facts = await self._streams.run_set(request.run_set)
        cell = next((cell for cell in facts.recipe.cells() if cell.name == request.cell), None)
        if cell is None:
            raise LookupError(f"run set {request.run_set} has no trial {request.cell!r}")
        created = TrialCreated(
            cell=cell.name,
            recipe_digest=facts.created.recipe_digest,
            role=cell.role,
            agent=cell.agent,
            base_model=cell.base_model,
            benchmark=cell.benchmark,
            repetition=cell.repetition,
            seed=cell.seed(facts.recipe.seed),
        )
        stream = trial_stream(request.run_set, request.cell)
        await self._stores.ledger.append(stream, [created], expected_seq=0, actor=self._stores.actor)

    @activity.defn(name="restart_trial")
    async def restart_trial(self, request: RestartRequest) -> TrialStanding:
        """Starts a trial again from its start, once for each start."""
        facts = await self._streams.run_set(request.run_set)
        event = AgentRestarted(epoch=request.epoch, host=request.host, cause=request.cause)
        await self._stores.append_next(trial_stream(request.run_set, request.cell), event)
        fold = await self._streams.fold(request.run_set, request.cell)
        return fold.standing(facts.recipe.failures.host_restarts)

    @activity.defn(name="abandon_trial")
    async def abandon_trial(self, request: AbandonRequest) -> TrialRef:
        """Leaves a trial without a result, unless it has one, or was left just now."""
        ref = TrialRef(run_set=request.run_set, cell=request.cell)
        await self._begin(ref)
        while True:
            fold = await self._streams.fold(request.run_set, request.cell)
            if fold.scored is not None or fold.is_abandoned:
                return ref
            event = TrialAbandoned(number=fold.abandonments, cause=request.cause)
            try:
                await self._stores.ledger.append(
                    trial_stream(request.run_set, request.cell),
                    [event],
                    expected_seq=fold.next_seq,
                    actor=self._stores.actor,
                )
            except Fenced:
                activity.logger.info("%s went on meanwhile", request.cell)
            else:
                return ref

    @activity.defn(name="close_trial")
    async def close_trial(self, request: TrialRef) -> TrialRef:
        """Appends a trial's record, which follows from its events."""
        facts = await self._streams.run_set(request.run_set)
        fold = await self._streams.fold(request.run_set, request.cell)
        if fold.scored is None:
            basis = Basis.model_validate(facts.created.basis)
            record = record_of(request.run_set, facts.recipe, basis.key, fold)
            await self._stores.append_next(
                trial_stream(request.run_set, request.cell), TrialScored(record=record.model_dump(mode="json"))
            )
        return request
