"""prepare_trial and test_environment: what an agent starts from, and whether it can work, before its clock runs."""

import asyncio
import os
import uuid
from pathlib import Path

from temporalio import activity

from activities.stores import dump_json
from activities.trial_folders import TrialFolder, TrialFolders
from activities.trial_streams import RunSetFacts, TrialStreams
from stepwell.contracts.trial import Host, TrialRef
from stepwell.events import EnvironmentTested, TrialPrepared
from stepwell.ptb.scaffolds import scaffold
from stepwell.ptb.secrets import Secrets
from stepwell.ptb.seeds import sample_seed
from stepwell.ptb.supervisor import AgentEnd, Attended, end_all, start
from stepwell.ptb.trials.agent_order import AgentPlaces, probe_order
from stepwell.ptb.trials.briefing import briefing_of
from stepwell.ptb.trials.files import benchmark_files, folder_digest, folders_of, mount_digests, program_version
from stepwell.ptb.trials.fold import TrialFold
from stepwell.ptb.trials.loading import regime_of
from stepwell.ptb.trials.manifest import manifest_digest, manifest_of
from stepwell.ptb.trials.self_evaluation import SelfEvaluation
from stepwell.ptb.trials.trace_text import stamped_trace
from stepwell.ptb.trials.workspace import note_given, write_workspace
from stepwell.sandbox.folders import remove_tree

LOOK_S = 0.3
"""Between two looks at a supervisor."""


class Unfit(RuntimeError):
    """The test before the clock failed: this host is not fit for the agent now."""


class OtherWorkspace(RuntimeError):
    """A trial that starts again would start from something else than before."""


class TrialPreparationActivities:
    """Prepares trials on this host."""

    def __init__(self, streams: TrialStreams, folders: TrialFolders) -> None:
        self._streams = streams
        self._folders = folders

    @activity.defn(name="prepare_trial")
    async def prepare_trial(self, request: TrialRef) -> Host:
        """Lays out what the agent starts from, once for each start, on the host that takes this up.

        Raises:
            OtherFiles: the base model or the benchmark is another one than when the run set began.
            OtherWorkspace: an earlier start of the trial was from other files or another prompt.
            PromptContradicts: the prompt says what is not so.
        """
        facts = await self._streams.run_set(request.run_set)
        fold = await self._streams.fold(request.run_set, request.cell)
        folder = self._folders.of(request.run_set, request.cell, fold.epoch)
        if fold.prepared is not None and folder.is_prepared.is_file():
            return Host(host=self._folders.host)
        attempt = await self._streams.take(request.run_set, request.cell, fold)
        for epoch in range(fold.epoch):  # an agent that was given up as lost must not work beside the next
            earlier = self._folders.of(request.run_set, request.cell, epoch)
            await asyncio.to_thread(end_all, earlier.root, "the trial starts again from its start")
        given = await asyncio.to_thread(_lay_out, facts, fold, folder)
        briefing = briefing_of(facts.recipe, fold.created)
        workspace = manifest_digest(await asyncio.to_thread(manifest_of, folder.work))
        inline: list[bytes] = []
        stage = self._streams.stores.stage
        prepared = TrialPrepared(
            workspace=workspace,
            files=await stage(dump_json(given), inline),
            prompt=await stage(briefing.text.encode(), inline),
            prompt_digest=briefing.digest,
            statements=list(briefing.said),
        )
        if fold.prepared is None:
            await attempt.append(prepared, blobs=inline)
        elif fold.prepared != prepared:
            raise OtherWorkspace(
                f"{request.cell} began from the workspace {fold.prepared.workspace[:12]}… and the prompt "
                f"{fold.prepared.prompt_digest[:12]}…, and would start again from {workspace[:12]}… and "
                f"{prepared.prompt_digest[:12]}…: was Stepwell changed meanwhile? Begin a new run set"
            )
        await asyncio.to_thread(folder.is_prepared.touch)
        return Host(host=self._folders.host)

    @activity.defn(name="test_environment")
    async def test_environment(self, request: TrialRef) -> TrialRef:
        """Runs the test before the clock in the agent's own sandbox.

        Raises:
            Unfit: it failed.
            AgentNotStarted: there can be no sandbox here.
        """
        facts = await self._streams.run_set(request.run_set)
        fold = await self._streams.fold(request.run_set, request.cell)
        folder = self._folders.prepared(request.run_set, request.cell, fold.epoch)
        if fold.tested is not None:
            return request
        attempt = await self._streams.take(request.run_set, request.cell, fold)
        agent = facts.recipe.agent(fold.created.agent)
        declared = scaffold(agent.scaffold)
        places = places_of(facts, fold, folder)
        secrets = Secrets.taken(agent.secrets, os.environ)
        order = probe_order(facts.recipe, agent, places, tuple(declared.version_command))
        await asyncio.to_thread(end_all, folder.test, "another attempt at the test before the clock")
        own = folder.test / uuid.uuid4().hex
        attended = await asyncio.to_thread(start, order, own, secrets.environment())
        end = await _ended(attended)
        report = secrets.redact(await asyncio.to_thread(_trace, Path(end.trace)))
        said = report.decode(errors="replace")
        if end.ended != "itself" or end.exit_status != 0:
            raise Unfit(f"the test before the clock ended by {end.ended} with {end.exit_status}: {said[-1500:]}")
        if manifest_digest(await asyncio.to_thread(manifest_of, folder.work)) != fold.prepared_workspace:
            raise Unfit("the test before the clock changed the work folder")
        version = (
            _version(said)
            if declared.version_command
            else await asyncio.to_thread(program_version, facts.recipe, agent)
        )
        inline: list[bytes] = []
        tested = EnvironmentTested(
            epoch=fold.epoch,
            host=self._folders.host,
            version=version,
            report=await self._streams.stores.stage(report, inline),
        )
        await attempt.append(tested, blobs=inline)
        return request


def places_of(facts: RunSetFacts, fold: TrialFold, folder: TrialFolder) -> AgentPlaces:
    """Folders that an agent works on."""
    base, _ = folders_of(facts.recipe, fold.created.base_model)
    return AgentPlaces(folder.work, folder.home, folder.tools, base)


def _lay_out(facts: RunSetFacts, fold: TrialFold, folder: TrialFolder) -> dict[str, str]:
    """Fills the folder anew. Returns the digests of what must not be changed."""
    recipe, created = facts.recipe, fold.created
    base, _ = folders_of(recipe, created.base_model)
    facts.require(f"base/{created.base_model}", folder_digest(base))
    for name, digest in mount_digests(recipe, recipe.agent(created.agent)).items():
        if name in facts.created.digests:  # run sets of the first version pinned none
            facts.require(name, digest)
    rules, files = regime_of(recipe), benchmark_files(recipe, created.benchmark)
    remove_tree(folder.root)
    folder.home.mkdir(parents=True)
    evaluation = SelfEvaluation(
        benchmark=created.benchmark,
        base_model=created.base_model,
        files={role: f"{role}{''.join(path.suffixes[-2:])}" for role, path in files.paths.items()},
        rows=files.rows,
        seed=sample_seed(created.seed, "self-evaluation"),
        max_tokens=rules.max_tokens[created.benchmark][0],
        engine=recipe.evaluation.engine,
    )
    write_workspace(folder.work, folder.tools, evaluation, files.paths)
    return note_given(folder.root, folder.work)


async def _ended(attended: Attended) -> AgentEnd:
    while (end := await asyncio.to_thread(attended.end)) is None:
        await asyncio.to_thread(attended.renew)
        await asyncio.sleep(LOOK_S)
    return end


def _trace(path: Path) -> bytes:
    with path.open("rb") as lines:
        return stamped_trace(lines)


def _version(said: str) -> str:
    """What the scaffold's program says of its version; `unknown` if it says none."""
    lines = [line.partition("version: ")[2].strip() for line in said.splitlines() if " version: " in f" {line}"]
    return lines[-1] if lines and lines[-1] else "unknown"
