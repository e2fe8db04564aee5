"""The sandbox worker: rollouts and gradings, each in sandboxes of its own."""

from activities.engine_pool import EnginePool
from activities.grading import GradingActivities
from activities.harness_rollout import HarnessHost
from activities.policy_files import PolicyFiles
from activities.rollout import RolloutActivities
from activities.task_images import TaskImages
from db.engines import Engines
from stepwell.agent.gateway.server import Gateway
from stepwell.policy.engine_http.server import listen
from stepwell.sandbox.by_image import SandboxesByImage
from workers.harness import run_harness
from workers.runtime import runtime, serve
from workers.services.addresses import Addresses
from workflows.contracts import SANDBOX_QUEUE


async def run_sandbox(addresses: Addresses, *, concurrency: int) -> None:
    """Serves the queue `sandbox` until told to stop; no sandbox is left behind.

    Args:
        addresses: of the services.
        concurrency: rollouts and gradings at once.
    """
    async with runtime("sandbox", addresses, connections=12, queue=SANDBOX_QUEUE) as opened:
        sandboxes = SandboxesByImage(opened.cache / "trees")
        engines = EnginePool(Engines(opened.database))
        gateway = Gateway()
        listening = await listen(gateway.app())  # for programs on this machine alone
        harnesses = HarnessHost(gateway, listening.url, opened.cache / "harnesses", run_harness)
        images = TaskImages()
        rollouts = RolloutActivities(opened.stores, engines, sandboxes, PolicyFiles(opened.stores), harnesses, images)
        grading = GradingActivities(opened.stores, sandboxes, images)
        try:
            await serve(
                opened.client,
                SANDBOX_QUEUE,
                [rollouts.run_rollout, grading.grade_rollout, grading.fail_rollouts],
                concurrency=concurrency,
                pollers=8,
            )
        finally:
            await listening.close()
            await engines.close()
            await sandboxes.close()
