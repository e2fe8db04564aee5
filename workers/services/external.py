"""Services that the environment gives: used, never started."""

import asyncio
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from workers.services.addresses import Addresses, is_external, variable, without_password
from workers.services.errors import NotReadyError, ServiceError
from workers.services.postgres import server_version as postgres_version
from workers.services.seaweedfs import make_bucket
from workers.services.settings import ServiceName
from workers.services.temporal import server_version as temporal_version


def shown_address(addresses: Addresses, service: ServiceName) -> str:
    """Where a service is, without passwords."""
    match service:
        case ServiceName.TEMPORAL:
            return addresses.temporal
        case ServiceName.POSTGRES:
            return without_password(addresses.appender)
        case ServiceName.S3:
            return str(addresses.bucket.endpoint)


def external_version(addresses: Addresses, service: ServiceName) -> str:
    """Version of a service that answers; empty for S3, whose protocol does not tell.

    Raises:
        NotReadyError: it does not answer.
        ServiceError: it answers, but refuses.
    """
    match service:
        case ServiceName.TEMPORAL:
            # In a thread of its own, since the caller may have an event loop.
            with ThreadPoolExecutor(1) as pool:
                return pool.submit(asyncio.run, temporal_version(addresses.temporal)).result()
        case ServiceName.POSTGRES:
            return postgres_version(addresses.appender)
        case ServiceName.S3:
            make_bucket(addresses.bucket)
            return ""


def check_external(addresses: Addresses, environment: Mapping[str, str] = os.environ) -> None:
    """Reaches each external service once, and makes the bucket if it is missing.

    Raises:
        ServiceError: one does not answer.
    """
    for service in ServiceName:
        if not is_external(service, environment):
            continue
        try:
            external_version(addresses, service)
        except NotReadyError as error:
            raise ServiceError(
                f"{service} does not answer at {shown_address(addresses, service)}: {error}. Correct or unset "
                f"{variable(service)}; without it an embedded one is started."
            ) from error
