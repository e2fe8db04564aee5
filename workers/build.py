"""Which build of the workflows decides: control workers are versioned, so that a new build takes running runs over.

A build is named by a digest of what decides a workflow's next step. Its first control worker makes it the deployment's
current version, and the server hands the next task of every workflow to it (`AUTO_UPGRADE`): the replay test holds that
it can go on with histories of the builds before. An older build that is started again, as by a restart policy in the
middle of a rolling update, does not take over again by itself.
"""

import asyncio
import hashlib
import logging
import os
from pathlib import Path

from temporalio.api.enums.v1 import WorkerDeploymentVersionStatus as Status
from temporalio.api.workflowservice.v1 import (
    DescribeWorkerDeploymentRequest,
    SetWorkerDeploymentCurrentVersionRequest,
)
from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import WorkerDeploymentConfig

DEPLOYMENT = "stepwell"
BUILD_VARIABLE = "STEPWELL_BUILD_ID"
"""Names the build, where images carry a version of their own."""
SOURCES = (
    "workflows",
    "stepwell/contracts",
    "stepwell/operators",
    "stepwell/recipe/live.py",
    "stepwell/rl/schedule.py",
)
"""What workflow code is made of."""
SUPERSEDED = (
    Status.WORKER_DEPLOYMENT_VERSION_STATUS_DRAINING,
    Status.WORKER_DEPLOYMENT_VERSION_STATUS_DRAINED,
)
LOOK_AGAIN_S = 0.2
TOLD_AFTER_S = 10.0


def build_id() -> str:
    """Name of this build."""
    named = os.environ.get(BUILD_VARIABLE)
    if named:
        return named
    root, digest = Path(__file__).parents[1], hashlib.sha256()
    for source in SOURCES:
        path = root / source
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def deployment_config(build: str) -> WorkerDeploymentConfig:
    """How a control worker names its build to the server."""
    return WorkerDeploymentConfig(
        version=WorkerDeploymentVersion(DEPLOYMENT, build),
        use_worker_versioning=True,
        default_versioning_behavior=VersioningBehavior.AUTO_UPGRADE,
    )


async def take_over(client: Client, build: str, *, again: bool) -> None:
    """Makes a build current as soon as the server knows its worker, which must be polling.

    Args:
        client: of the worker.
        build: its build.
        again: also if the build was current before, and another took over.
    """
    waited_s = 0.0
    while True:
        try:
            if await _is_settled(client, build, again=again):
                return
            await client.workflow_service.set_worker_deployment_current_version(
                SetWorkerDeploymentCurrentVersionRequest(
                    namespace=client.namespace,
                    deployment_name=DEPLOYMENT,
                    build_id=build,
                    identity=client.identity,
                    ignore_missing_task_queues=True,
                )
            )
        except RPCError as error:
            # Until the first poll has arrived the server knows no such version; two builds may also ask at once.
            waited_s += LOOK_AGAIN_S
            if waited_s > TOLD_AFTER_S:
                logging.warning("build %s is not current yet: %s", build, error)
                waited_s = 0.0
            await asyncio.sleep(LOOK_AGAIN_S)
        else:
            logging.info("build %s decides from now on", build)
            return


async def _is_settled(client: Client, build: str, *, again: bool) -> bool:
    """Whether there is nothing to do: the build is current, or was superseded and shall stay so."""
    request = DescribeWorkerDeploymentRequest(namespace=client.namespace, deployment_name=DEPLOYMENT)
    try:
        found = (await client.workflow_service.describe_worker_deployment(request)).worker_deployment_info
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return False
        raise
    current = found.routing_config.current_deployment_version.build_id
    if current == build:
        return True
    mine = [each for each in found.version_summaries if each.deployment_version.build_id == build]
    if again or not current or not mine or mine[0].status not in SUPERSEDED:
        return False
    logging.warning(
        "build %s was superseded by %s; `stepwell worker control --take-over` makes it decide again",
        build,
        current,
    )
    return True
