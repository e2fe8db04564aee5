"""The trial worker: benchmark trials, from their preparation to their record. Agents run under supervisors that outlive
it, and that the next trial worker of the same home takes up."""

import asyncio

from activities.trial_agent import TrialAgentActivities
from activities.trial_checks import TrialCheckActivities
from activities.trial_evaluation import TrialEvaluationActivities
from activities.trial_folders import TrialFolders
from activities.trial_judging import TrialJudgingActivities
from activities.trial_ledger import TrialLedgerActivities
from activities.trial_preparation import TrialPreparationActivities
from activities.trial_streams import TrialStreams
from activities.trial_submission import TrialSubmissionActivities
from workers.lifetime import on_stop_signals
from workers.runtime import make_worker, runtime
from workers.services.addresses import Addresses
from workers.services.home import Home
from workflows.contracts import TRIAL_QUEUE
from workflows.ids import trial_host_queue


async def run_trials(addresses: Addresses, *, concurrency: int) -> None:
    """Serves the queue `trial` and its host's own until told to stop. Agents under way go on without it for a lease.

    Args:
        addresses: of the services.
        concurrency: activities at once, of each queue.
    """
    home = Home.of(None).root
    folders = TrialFolders(home / "trials")
    host = await asyncio.to_thread(lambda: folders.host)
    async with runtime("trial", addresses, connections=8, queue=TRIAL_QUEUE) as opened:
        streams = TrialStreams(opened.stores)
        ledger = TrialLedgerActivities(streams)
        preparation = TrialPreparationActivities(streams, folders)
        agents = TrialAgentActivities(streams, folders)
        submissions = TrialSubmissionActivities(streams, folders)
        checks = TrialCheckActivities(streams, folders)
        judging = TrialJudgingActivities(streams, folders)
        evaluation = TrialEvaluationActivities(streams, home / "evaluations")
        anywhere = make_worker(
            opened.client,
            TRIAL_QUEUE,
            [
                ledger.fold_run_set,
                ledger.finish_run_set,
                ledger.fold_trial,
                ledger.restart_trial,
                ledger.abandon_trial,
                ledger.close_trial,
                preparation.prepare_trial,
                evaluation.score_submission,
            ],
            concurrency=concurrency,
        )
        here = make_worker(
            opened.client,
            trial_host_queue(host),
            [
                preparation.test_environment,
                agents.run_agent,
                submissions.take_submission,
                checks.check_submission,
                judging.judge_trial,
            ],
            concurrency=concurrency,
        )
        stop = asyncio.Event()
        on_stop_signals(stop.set)
        async with anywhere, here:
            await stop.wait()
