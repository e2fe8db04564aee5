"""Activities of the control worker on `prompt/<run>/…`: a group opens, and closes with exactly one fate."""

from temporalio import activity

from activities.folds import RolloutFold, fold_rollout
from activities.run import open_prompts
from activities.stores import Stores
from stepwell.contracts.rollout import CloseGroupsRequest, GroupFate, GroupsClosed, OpenGroupsRequest, Purpose
from stepwell.contracts.run import GRADING_S, Dispatch, PromptRef
from stepwell.events import GroupClosed, GroupOpened
from stepwell.events.base import facts_digest
from stepwell.events.children import ChildHead
from stepwell.events.streams import prompt_stream, rollout_stream
from stepwell.rl.grouping import MemberEnd, close_group
from stepwell.tasks.graders import grading_deadline_s


class GroupActivities:
    """Opens and closes prompt groups."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    @activity.defn(name="open_groups")
    async def open_groups(self, request: OpenGroupsRequest) -> Dispatch:
        """Opens the streams of the prompts, once; returns those that are not closed, with the deadline of a grading."""
        dispatch = await open_prompts(self._stores, request.run, request.scope, list(request.prompts))
        opened: list[PromptRef] = []
        for prompt in dispatch.open:
            task = await self._stores.task(prompt.task)
            grading_s = grading_deadline_s(task)
            opened.append(prompt.model_copy(update={"grading_s": grading_s if grading_s > GRADING_S else None}))
            await self._stores.ledger.append(
                prompt_stream(request.run, request.scope, prompt.prompt),
                [GroupOpened(task=prompt.task, task_id=task.id, version=request.version, samples=request.samples)],
                expected_seq=0,
                actor=self._stores.actor,
            )
        return dispatch.model_copy(update={"open": tuple(opened)})

    @activity.defn(name="close_groups")
    async def close_groups(self, request: CloseGroupsRequest) -> GroupsClosed:
        """Gives each prompt its fate, with the heads of its rollouts; one that has it keeps it."""
        return GroupsClosed(
            scope=request.scope,
            groups=tuple([await self._close(request, prompt) for prompt in request.prompts]),
        )

    async def _close(self, request: CloseGroupsRequest, prompt: PromptRef) -> GroupFate:
        stream = prompt_stream(request.run, request.scope, prompt.prompt)
        names = [rollout_stream(request.run, request.scope, prompt.prompt, sample) for sample in range(request.samples)]
        streams = await self._stores.ledger.read_many([stream, *names])
        folds = {name: fold_rollout(streams.get(name, [])) for name in names}
        closing = group_closed(folds, request.purpose, request.skipped)
        standing = [recorded.event for recorded in streams[stream] if isinstance(recorded.event, GroupClosed)]
        if standing:
            closing = standing[0]
        else:
            await self._stores.ledger.append(stream, [closing], expected_seq=1, actor=self._stores.actor)
        scores = [score for score in closing.scores if score is not None]
        return GroupFate(
            prompt=prompt.prompt,
            fate=closing.fate,
            reward_mean=sum(scores) / len(scores) if scores else None,
        )


def group_closed(folds: dict[str, RolloutFold], purpose: Purpose, skipped: str = "") -> GroupClosed:
    """The closing event of a group, from its rollouts in the order of their samples."""
    return close_group([_member(name, fold) for name, fold in folds.items()], purpose, skipped)


def _member(name: str, fold: RolloutFold) -> MemberEnd:
    begun = fold.next_seq > 0
    child = ChildHead(stream=name, seq=fold.next_seq - 1, head=fold.head, facts=facts_digest(fold.facts))
    return MemberEnd(graded=fold.graded, failed=fold.failed, child=child if begun else None)
