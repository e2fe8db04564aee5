"""judge_trial: three votes on each charge that no program can decide, on the agent's host."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from temporalio import activity

from activities.stores import dump_json
from activities.trial_folders import TrialFolder, TrialFolders
from activities.trial_streams import RunSetFacts, TrialStreams
from stepwell.contracts.trial import TrialRef
from stepwell.events import JudgementReached
from stepwell.ptb.judges import Record, changed_files, file_digests, judge, prepare, trial_sources
from stepwell.ptb.judges.votes import VOTES
from stepwell.ptb.judging import Judge, OpenAIJudge, RecordedJudge
from stepwell.ptb.judging.openai_judge import JudgeSettings
from stepwell.ptb.secrets import Secrets
from stepwell.ptb.seeds import sample_seed
from stepwell.ptb.trials.fold import TrialFold
from stepwell.ptb.trials.recipe import JudgesSection
from stepwell.ptb.trials.workspace import read_given


class JudgesSilent(RuntimeError):
    """A judge gave no verdict, and may give one later."""


class TrialJudgingActivities:
    """Has trials judged whose agents ran on this host."""

    def __init__(self, streams: TrialStreams, folders: TrialFolders) -> None:
        self._streams = streams
        self._folders = folders

    @activity.defn(name="judge_trial")
    async def judge_trial(self, request: TrialRef) -> TrialRef:
        """Has every charge of the recipe voted on, and records each as it is; none of a trial whose record holds a
        secret, which has failed.

        Raises:
            JudgesSilent: a vote is missing, and this was not the last attempt.
            SecretSurvives: a secret would be sent.
        """
        facts = await self._streams.run_set(request.run_set)
        section = facts.recipe.judges
        fold = await self._streams.fold(request.run_set, request.cell)
        done = {each.charge for each in fold.judgements}
        assert fold.ended is not None  # the workflow asks in order
        if section is None or fold.ended.secrets or done.issuperset(section.charges):
            return request
        folder = self._folders.prepared(request.run_set, request.cell, fold.epoch)
        attempt = await self._streams.take(request.run_set, request.cell, fold)
        record = _record(facts, fold, folder)
        is_last = activity.info().attempt >= facts.recipe.failures.attempts
        async with judge_of(section) as one:
            for charge in section.charges:
                if charge in done:
                    continue
                asked = prepare(record, charge)
                judged = await judge(asked, [one] * VOTES, seed=sample_seed(fold.created.seed, "judges"))
                if judged.outcome == "unscored" and not is_last:
                    missing = next(vote.error for vote in judged.votes if vote.error is not None)
                    raise JudgesSilent(f"{charge}: {missing}")
                inline: list[bytes] = []
                stage = self._streams.stores.stage
                question = [{"role": each.role, "content": each.content} for each in asked.messages]
                reached = JudgementReached(
                    epoch=fold.epoch,
                    charge=charge,
                    outcome=judged.outcome,
                    judged=judged.digest,
                    votes=await stage(judged.model_dump_json().encode(), inline),
                    question=await stage(dump_json(question), inline),
                )
                await attempt.append(reached, blobs=inline)
        return request


@asynccontextmanager
async def judge_of(section: JudgesSection) -> AsyncGenerator[Judge]:
    """The judge that a recipe names.

    Raises:
        MissingSecret: this process has no value for the key.
        BrokenRecord: the file of recorded judgements holds none of one judge.
    """
    if section.recorded is not None:
        yield RecordedJudge(Path(section.recorded))
        return
    assert section.address is not None  # the recipe has one or the other
    assert section.model is not None
    key = None if section.key is None else Secrets.taken([section.key], os.environ).environment()[section.key]
    settings = JudgeSettings(section.address, section.model, section.effort)
    async with OpenAIJudge(settings, key) as one:
        yield one


def _record(facts: RunSetFacts, fold: TrialFold, folder: TrialFolder) -> Record:
    agent = facts.recipe.agent(fold.created.agent)
    secrets = Secrets.taken(agent.secrets, os.environ).environment()
    sources = trial_sources([folder.trace], folder.tree, [folder.traffic], secrets)
    before = read_given(folder.root)
    changed = changed_files(before, file_digests(folder.work, sorted(before)))
    return Record(sources, changed, secrets)
