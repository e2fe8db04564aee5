"""Activities of trials that only keep a book of what was asked, and fail as a test tells them."""

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from stepwell.contracts.trial import (
    AbandonRequest,
    CheckRequest,
    Host,
    RestartRequest,
    RunSetRef,
    RunSetStanding,
    TrialPlan,
    TrialRef,
    TrialStanding,
)
from workflows.contracts import TRIAL_QUEUE
from workflows.ids import trial_host_queue
from workflows.run_set import RunSet
from workflows.trial import Trial

HOST = "played-host"
PLAN = TrialPlan(hours=1.0, host_restarts=2, attempts=2, lost_after_s=2.0, evaluation_s=60.0)


@dataclass
class PlayedTrials:
    """The trial queue's activities, for trials of which nothing is real but the order."""

    cells: tuple[str, ...]
    asked: list[str] = field(default_factory=list)
    """`<activity> <cell>`, in order."""
    faults: dict[str, int] = field(default_factory=dict)
    """How often an asked thing still fails because the host died."""
    broken: set[str] = field(default_factory=set)
    """Asked things that fail each time, for any other reason."""
    hosts: dict[str, str] = field(default_factory=dict)
    """Host that a preparation names, by cell, if not this one."""
    scored: list[str] = field(default_factory=list)
    finished: bool = False
    epochs: Counter[str] = field(default_factory=Counter)
    running: int = 0
    most_running: int = 0

    def _ask(self, what: str, cell: str) -> None:
        asked = f"{what} {cell}"
        self.asked.append(asked)
        if self.faults.get(asked, 0) > 0:
            self.faults[asked] -= 1
            raise ApplicationError("the supervisor is gone", type="AgentHostDied", non_retryable=True)
        if asked in self.broken:
            raise ApplicationError("the disk is full", type="DiskFull")

    def _standing(self, cell: str) -> TrialStanding:
        left = max(0, PLAN.host_restarts - self.epochs[cell])
        return TrialStanding(
            role="base" if cell.startswith("base.") else "agent",
            epoch=self.epochs[cell],
            host="",
            restarts_left=left,
            scored=cell in self.scored,
        )

    @activity.defn(name="fold_run_set")
    async def fold_run_set(self, request: RunSetRef) -> RunSetStanding:
        """Which are open."""
        open_cells = tuple(cell for cell in self.cells if cell not in self.scored)
        return RunSetStanding(open=open_cells, scored=len(self.scored), finished=self.finished)

    @activity.defn(name="finish_run_set")
    async def finish_run_set(self, request: RunSetRef) -> RunSetRef:
        """Finished."""
        self.finished = True
        return request

    @activity.defn(name="fold_trial")
    async def fold_trial(self, request: TrialRef) -> TrialStanding:
        """Counts trials under way."""
        self._ask("fold", request.cell)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        return self._standing(request.cell)

    @activity.defn(name="restart_trial")
    async def restart_trial(self, request: RestartRequest) -> TrialStanding:
        """Another epoch."""
        self._ask("restart", request.cell)
        self.epochs[request.cell] = request.epoch
        return self._standing(request.cell)

    @activity.defn(name="abandon_trial")
    async def abandon_trial(self, request: AbandonRequest) -> TrialRef:
        """Given up."""
        self._ask("abandon", request.cell)
        self.running -= 1
        return TrialRef(run_set=request.run_set, cell=request.cell)

    @activity.defn(name="prepare_trial")
    async def prepare_trial(self, request: TrialRef) -> Host:
        """On this host, or one that nobody serves."""
        self._ask("prepare", request.cell)
        return Host(host=self.hosts.pop(request.cell, HOST))

    @activity.defn(name="test_environment")
    async def test_environment(self, request: TrialRef) -> TrialRef:
        """Tested."""
        self._ask("test", request.cell)
        return request

    @activity.defn(name="run_agent")
    async def run_agent(self, request: TrialRef) -> TrialRef:
        """Ran."""
        self._ask("agent", request.cell)
        return request

    @activity.defn(name="take_submission")
    async def take_submission(self, request: TrialRef) -> TrialRef:
        """Taken."""
        self._ask("submission", request.cell)
        return request

    @activity.defn(name="check_submission")
    async def check_submission(self, request: CheckRequest) -> TrialRef:
        """Checked."""
        self._ask(request.check, request.cell)
        return TrialRef(run_set=request.run_set, cell=request.cell)

    @activity.defn(name="judge_trial")
    async def judge_trial(self, request: TrialRef) -> TrialRef:
        """Judged."""
        self._ask("judges", request.cell)
        return request

    @activity.defn(name="score_submission")
    async def score_submission(self, request: TrialRef) -> TrialRef:
        """Scored."""
        self._ask("score", request.cell)
        return request

    @activity.defn(name="close_trial")
    async def close_trial(self, request: TrialRef) -> TrialRef:
        """Recorded."""
        self._ask("close", request.cell)
        self.scored.append(request.cell)
        self.running -= 1
        return request

    @asynccontextmanager
    async def served(self, client: Client, workflow_queue: str) -> AsyncGenerator[None]:
        """Workers for workflows and activities while the block runs."""
        workflows = Worker(
            client,
            task_queue=workflow_queue,
            workflows=[RunSet, Trial],
            workflow_runner=UnsandboxedWorkflowRunner(),
        )
        anywhere = [
            self.fold_run_set,
            self.finish_run_set,
            self.fold_trial,
            self.restart_trial,
            self.abandon_trial,
            self.prepare_trial,
            self.score_submission,
            self.close_trial,
        ]
        here = [
            self.test_environment,
            self.run_agent,
            self.take_submission,
            self.check_submission,
            self.judge_trial,
        ]
        async with (
            workflows,
            Worker(client, task_queue=TRIAL_QUEUE, activities=anywhere),
            Worker(client, task_queue=trial_host_queue(HOST), activities=here),
        ):
            yield
