"""Activity of the control worker that fixes a step's batch, as a pure function of what is recorded."""

from collections.abc import Mapping, Sequence

from temporalio import activity

from activities.folds import RolloutFold, fold_rollout
from activities.recipe_at import recipe_at
from activities.stores import RunFacts, Stores
from db.recorded import Recorded
from stepwell.contracts.run import Admission, StepRef
from stepwell.events import GroupClosed, GroupOpened, PromptReplaced
from stepwell.events.base import facts_digest
from stepwell.events.children import ChildHead, commitment_blob
from stepwell.events.streams import prompt_stream, run_stream
from stepwell.rl.admission import ClosedGroup, NotReady, admit, step_admitted
from stepwell.rl.batching import BatchManifest, build_manifest
from stepwell.rl.grouping import rollouts_of
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
        samples = facts.recipe.run.samples_per_prompt
        names = [name for prompt in admission.prompts for name in _rollouts_of(groups[prompts[prompt]], samples)]
        streams = await stores.ledger.read_many(names)
        rollouts = {name: fold_rollout(streams[name]) for name in names}
        manifest = manifest_of(step, rollouts, facts)
        await stores.blobs.put_many([commitment_blob(children), manifest.canonical_bytes()])
        admitted = step_admitted(manifest, children)
        await stores.append_next(run_stream(run), admitted)
        return Admission(
            step=step, rollouts=admitted.rollouts, masked=admitted.masked, reward_mean=admitted.reward_mean
        )


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


def _rollouts_of(group: Sequence[Recorded], samples: int) -> list[str]:
    closing = next(each.event for each in group if isinstance(each.event, GroupClosed))
    return rollouts_of(group[0].stream, samples, closing)


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
