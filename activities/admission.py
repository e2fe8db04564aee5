"""Activity of the control worker that fixes a step's batch, as a pure function of what is recorded."""

from collections.abc import Mapping, Sequence

from temporalio import activity

from activities.folds import RolloutFold, fold_rollout
from activities.recipe_at import recipe_at
from activities.stores import RunFacts, Stores
from db.recorded import Recorded
from stepwell.contracts.run import Admission, StepRef
from stepwell.events import GroupClosed, GroupOpened, PromptReplaced, StepAdmitted
from stepwell.events.base import facts_digest
from stepwell.events.children import ChildHead, Commitment, commitment_blob, facts_of_children
from stepwell.events.streams import prompt_stream, rollout_stream, run_stream
from stepwell.rl.admission import ClosedGroup, NotReady, admit
from stepwell.rl.batching import BatchManifest, build_manifest
from stepwell.rl.outcomes import rollout_facts


class AdmissionActivities:
    """Fixes batches."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    @activity.defn(name="admit_step")
    async def admit_step(self, request: StepRef) -> Admission:
        """Admits every group of the step that is to be trained; asked again, it answers from the ledger."""
        stores, run, step = self._stores, request.run, request.step
        facts = await stores.run_facts(run)
        recipe = await recipe_at(stores, run, step)
        recorded = await stores.ledger.read(run_stream(run))
        added = sum(isinstance(each.event, PromptReplaced) and each.event.step == step for each in recorded)
        count = recipe.run.prompts_per_step + added
        prompts = [prompt_stream(run, str(step), index) for index in range(count)]
        groups = await stores.ledger.read_many(prompts)
        children = [_child(name, groups[name]) for name in prompts]
        admission = admit(
            step,
            count,
            recipe.run.max_staleness,
            [_closed(index, groups[name]) for index, name in enumerate(prompts)],
        )
        rollouts = await self._rollouts(run, step, admission.prompts, facts)
        manifest = manifest_of(step, rollouts, facts)
        blob = commitment_blob(children)
        heads, manifest_ref = await stores.blobs.put_many([blob, manifest.canonical_bytes()])
        rewards = [sample.reward for sample in manifest.samples if sample.reward is not None]
        admitted = StepAdmitted(
            step=step,
            manifest=manifest_ref.digest,
            group_facts=facts_of_children(children),
            group_heads=Commitment(count=len(children), heads=heads.digest, facts=facts_of_children(children)),
            rollouts=len(manifest.samples),
            masked=sum(sample.mask is not None for sample in manifest.samples),
            reward_mean=sum(rewards) / len(rewards) if rewards else 0.0,
        )
        await stores.append_next(run_stream(run), admitted)
        return Admission(
            step=step, rollouts=admitted.rollouts, masked=admitted.masked, reward_mean=admitted.reward_mean
        )

    async def _rollouts(self, run: str, step: int, prompts: Sequence[int], facts: RunFacts) -> dict[str, RolloutFold]:
        """Rollouts of the admitted prompts."""
        samples = range(facts.recipe.run.samples_per_prompt)
        names = [rollout_stream(run, str(step), prompt, sample) for prompt in prompts for sample in samples]
        streams = await self._stores.ledger.read_many(names)
        return {name: fold_rollout(streams.get(name, [])) for name in names}


def manifest_of(step: int, rollouts: Mapping[str, RolloutFold], facts: RunFacts) -> BatchManifest:
    """The batch manifest of a step: what an auditor recomputes."""
    recipe = facts.recipe
    return build_manifest(
        step=step,
        parent_version=step,
        temperature=recipe.sampling.temperature,
        rollouts=[
            rollout_facts(
                name,
                fold.ended,
                fold.graded,
                fold.failed,
                rows=fold.rows,
                overlong_filtering=recipe.rl.overlong_filtering,
            )
            for name, fold in rollouts.items()
        ],
        grpo=recipe.rl,
        packing=recipe.trainer.packing,
        run_seed=recipe.run.seed,
    )


def _closed(prompt: int, stream: Sequence[Recorded]) -> ClosedGroup:
    """How a prompt's group ended.

    Raises:
        NotReady: it has not.
    """
    events = [recorded.event for recorded in stream]
    opened = next((event for event in events if isinstance(event, GroupOpened)), None)
    closing = next((event for event in events if isinstance(event, GroupClosed)), None)
    if opened is None or closing is None:
        raise NotReady(f"prompt {prompt} has no fate yet")
    return ClosedGroup(prompt=prompt, fate=closing.fate, version=opened.version)


def _child(name: str, stream: Sequence[Recorded]) -> ChildHead:
    last = stream[-1]
    return ChildHead(
        stream=name, seq=last.seq, head=last.envelope.hash, facts=facts_digest([each.event for each in stream])
    )
