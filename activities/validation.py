"""Activities of the control worker on `validation/<run>/…`: which tasks, and pass@k."""

from temporalio import activity

from activities.folds import version_ref
from activities.run import open_prompts
from activities.stores import Stores
from stepwell.contracts.run import Dispatch, OpenValidationRequest, PromptRef, ValidationScore
from stepwell.events import GroupClosed, ValidationClosed, ValidationOpened, ValidationRecorded
from stepwell.events.base import facts_digest
from stepwell.events.children import ChildHead, Commitment, commitment_blob, facts_of_children
from stepwell.events.group_closed import Fate
from stepwell.events.streams import (
    prompt_stream,
    run_stream,
    validation_scope,
    validation_stream,
)


class UnfinishedValidation(RuntimeError):
    """A task of a validation has no result: infrastructure abandoned it, and a pass@k without it would be another."""


class ValidationActivities:
    """Opens and closes validations."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    @activity.defn(name="open_validation")
    async def open_validation(self, request: OpenValidationRequest) -> Dispatch:
        """Pins the version and the tasks, once; returns the tasks that have no result yet."""
        facts = await self._stores.run_facts(request.run)
        entries = facts.manifest.dataset(request.dataset)
        weights = await self._stores.weights(request.run)
        versions = [made for made in map(version_ref, weights) if made is not None and made.version == request.version]
        await self._stores.ledger.append(
            validation_stream(request.run, request.version, request.dataset),
            [
                ValidationOpened(
                    version=request.version,
                    weights_digest=versions[0].weights_digest,
                    dataset=request.dataset,
                    tasks=[entry.blob for entry in entries],
                    samples=facts.recipe.validation.samples,
                )
            ],
            expected_seq=0,
            actor=self._stores.actor,
        )
        scope = validation_scope(request.version, request.dataset)
        prompts = [PromptRef(prompt=index, task=entry.blob) for index, entry in enumerate(entries)]
        return await open_prompts(self._stores, request.run, scope, prompts)

    @activity.defn(name="close_validation")
    async def close_validation(self, request: OpenValidationRequest) -> ValidationScore:
        """Records pass@1 and pass@k, in the validation's stream and in the run's.

        Raises:
            UnfinishedValidation: a task has no score.
        """
        stores, run = self._stores, request.run
        facts = await stores.run_facts(run)
        scope = validation_scope(request.version, request.dataset)
        names = [prompt_stream(run, scope, index) for index in range(len(facts.manifest.dataset(request.dataset)))]
        streams = await stores.ledger.read_many(names)
        closings: list[GroupClosed] = []
        children: list[ChildHead] = []
        for name in names:
            last = streams[name][-1]
            if not isinstance(last.event, GroupClosed) or last.event.fate is not Fate.VALIDATED:
                raise UnfinishedValidation(f"{name} ended without a result: {last.event}")
            closings.append(last.event)
            digest = facts_digest([recorded.event for recorded in streams[name]])
            children.append(ChildHead(stream=name, seq=last.seq, head=last.envelope.hash, facts=digest))
        heads = await stores.blobs.put(commitment_blob(children))
        closed = validation_closed(
            closings,
            k=facts.recipe.validation.samples,
            heads=Commitment(count=len(children), heads=heads.digest, facts=facts_of_children(children)),
        )
        stream = validation_stream(run, request.version, request.dataset)
        head = await stores.ledger.append(stream, [closed], expected_seq=1, actor=stores.actor)
        opened = (await stores.ledger.read(stream))[0].event
        await stores.append_next(
            run_stream(run),
            ValidationRecorded(
                version=request.version,
                dataset=request.dataset,
                pass_1=closed.pass_1,
                pass_k=closed.pass_k,
                k=closed.k,
                stream_head=head.hash,
                validation_facts=facts_digest([opened, closed]),
            ),
        )
        return ValidationScore(
            version=request.version, dataset=request.dataset, pass_1=closed.pass_1, pass_k=closed.pass_k, k=closed.k
        )


def validation_closed(closings: list[GroupClosed], *, k: int, heads: Commitment) -> ValidationClosed:
    """The closing event, from the groups in the order of their tasks. pass@k here is the benchmark's: the share of
    tasks that any of k samples passes."""
    scores = [[score for score in closing.scores if score is not None] for closing in closings]
    passed = [sum(score > 0 for score in of_task) for of_task in scores]
    graded = [len(of_task) for of_task in scores]
    tasks = len(closings)
    return ValidationClosed(
        passed=passed,
        graded=graded,
        pass_1=sum(won / of for won, of in zip(passed, graded, strict=True)) / tasks,
        pass_k=sum(won > 0 for won in passed) / tasks,
        k=k,
        children_facts=heads.facts,
        children_heads=heads,
    )
