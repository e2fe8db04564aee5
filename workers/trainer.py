"""The trainer worker: owns one trainer in memory and the ranks of it, one activity at a time."""

from transformers.utils import logging as transformers_logging

from activities.training import TrainingActivities
from workers.runtime import runtime, serve
from workers.services.addresses import Addresses
from workflows.contracts import TRAINER_QUEUE


async def run_trainer(addresses: Addresses) -> None:
    """Serves the queue `trainer` until told to stop."""
    transformers_logging.disable_progress_bar()
    async with runtime("trainer", addresses, connections=4, queue=TRAINER_QUEUE) as opened:
        training = TrainingActivities(opened.stores, opened.cache, opened.models)
        activities = [training.create_policy, training.train_step]
        try:
            await serve(opened.client, TRAINER_QUEUE, activities, concurrency=1, pollers=1)
        finally:
            await training.close()
