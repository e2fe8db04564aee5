"""run_agent: starts an agent under a supervisor, or takes it up where an earlier worker left it, to its end."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.trial_folders import TrialFolder, TrialFolders
from activities.trial_preparation import places_of
from activities.trial_streams import RunSetFacts, TrialAttempt, TrialStreams
from stepwell.contracts.trial import TrialRef
from stepwell.events import AgentEnded, AgentStarted
from stepwell.ptb.prompts import go_on_text
from stepwell.ptb.scaffolds import Scaffold, scaffold, stop_of
from stepwell.ptb.secrets import Secrets
from stepwell.ptb.supervisor import AgentEnd, AgentHostDied, AgentNotStarted, Attended, start, take_up
from stepwell.ptb.traces import TraceSummary, dump_events, read_lines, read_trace
from stepwell.ptb.trials.agent_order import agent_order, command_of
from stepwell.ptb.trials.briefing import briefing_of
from stepwell.ptb.trials.fold import TrialFold
from stepwell.ptb.trials.trace_text import stamped_trace
from stepwell.sandbox.folders import remove_tree

LOOK_S = 1.0
"""Between two looks at the supervisor, and between two renewals of its lease; shorter for short leases."""


class TrialAgentActivities:
    """Attends agents on this host."""

    def __init__(self, streams: TrialStreams, folders: TrialFolders) -> None:
        self._streams = streams
        self._folders = folders

    @activity.defn(name="run_agent")
    async def run_agent(self, request: TrialRef) -> TrialRef:
        """Attends an agent to its end. A worker that stops leaves it to its lease, and the next one takes it up.

        Raises:
            AgentHostDied: supervisor, files or lease are lost: the trial is to start again from its start.
            AgentNotStarted: there can be no sandbox here, or something is not there.
            SecretTooShort, MissingSecret: a secret that the recipe names cannot be given.
        """
        facts = await self._streams.run_set(request.run_set)
        fold = await self._streams.fold(request.run_set, request.cell)
        if fold.ended is not None:
            return request
        folder = self._folders.prepared(request.run_set, request.cell, fold.epoch)
        attempt = await self._streams.take(request.run_set, request.cell, fold)
        agent = facts.recipe.agent(fold.created.agent)
        secrets = Secrets.taken(agent.secrets, os.environ)
        attended = await self._attended(facts, fold, folder, secrets)
        if fold.started is None:
            started = AgentStarted(epoch=fold.epoch, host=self._folders.host, folder=str(folder.supervisor))
            await attempt.append(started)
        end = await _seen_to_its_end(attended, facts.recipe.failures.lease_s)
        await self._record(attempt, facts, fold, folder, end, secrets)
        return request

    async def _attended(self, facts: RunSetFacts, fold: TrialFold, folder: TrialFolder, secrets: Secrets) -> Attended:
        if folder.supervisor.is_dir() and any(folder.supervisor.iterdir()):
            return await asyncio.to_thread(take_up, folder.supervisor)
        if fold.started is not None:
            raise AgentHostDied(f"{folder.supervisor} is empty, and the agent had started: its files were lost")
        recipe, agent = facts.recipe, facts.recipe.agent(fold.created.agent)
        briefing = briefing_of(recipe, fold.created)
        made = command_of(agent, briefing.text)
        await asyncio.to_thread(_write_home, folder.home, made.files)
        order = agent_order(recipe, agent, places_of(facts, fold, folder), made, go_on_text())
        try:
            return await asyncio.to_thread(start, order, folder.supervisor, secrets.environment())
        except AgentNotStarted as error:
            await asyncio.to_thread(remove_tree, folder.supervisor)
            is_last = activity.info().attempt >= recipe.failures.attempts
            raise ApplicationError(str(error), type="AgentNotStarted", non_retryable=is_last) from error

    async def _record(
        self,
        attempt: TrialAttempt,
        facts: RunSetFacts,
        fold: TrialFold,
        folder: TrialFolder,
        end: AgentEnd,
        secrets: Secrets,
    ) -> None:
        if end.ended == "stopped":
            raise AgentHostDied(f"the agent was stopped from outside: {end.detail}")
        declared = scaffold(facts.recipe.agent(fold.created.agent).scaffold)
        trace = secrets.redact(await asyncio.to_thread(_trace, Path(end.trace)))
        traffic = secrets.redact(await asyncio.to_thread(_bytes, Path(end.network_log)))
        read = await asyncio.to_thread(read_trace, read_lines(trace), declared.trace.format, declared.trace.limits)
        events = dump_events(read.events)
        leaked = sorted({name for data in (trace, events, traffic) for name in secrets.survivors(data)})
        if not leaked:
            folder.trace.write_bytes(trace)
            folder.traffic.write_bytes(traffic)
        inline: list[bytes] = []
        stage = self._streams.stores.stage
        ended = AgentEnded(
            epoch=fold.epoch,
            ended=end.ended,
            exit_status=end.exit_status,
            prompts=end.prompts,
            limit=_limit(declared, end, read.summary),
            secrets=leaked,
            tokens=end.tokens or read.summary.tokens,
            money=end.money or read.summary.cost_usd,
            worked_s=end.worked_s,
            trace="" if leaked else await stage(trace, inline),
            events="" if leaked else await stage(events, inline),
            traffic="" if leaked or not traffic else await stage(traffic, inline),
        )
        await attempt.append(ended, blobs=inline)


async def _seen_to_its_end(attended: Attended, lease_s: float) -> AgentEnd:
    while (end := await asyncio.to_thread(attended.end)) is None:
        await asyncio.to_thread(attended.renew)
        await asyncio.sleep(min(LOOK_S, lease_s / 4))
    return end


def _write_home(home: Path, files: Mapping[str, str]) -> None:
    """What the agent's program finds in its home."""
    for name, text in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _trace(path: Path) -> bytes:
    with path.open("rb") as lines:
        return stamped_trace(lines)


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _limit(declared: Scaffold, end: AgentEnd, summary: TraceSummary) -> str:
    """Limits that were met, and whether one ended the agent."""
    met = [f"{kind} × {count}" for kind, count in summary.limits.items()]
    stop = stop_of(declared, end.exit_status, summary) if end.ended in ("itself", "crash") else None
    return "; ".join([*met, *([f"ended by {stop.limit}"] if stop is not None and stop.limit else [])])
