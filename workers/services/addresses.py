"""Where the three services are: given by environment, else the embedded ones of the home."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from db.objects import S3Address
from workers.services.errors import ServiceError
from workers.services.home import Home
from workers.services.settings import DatabaseRole, ServiceName, Settings, load_settings

BUCKET = "stepwell"
"""Name of the bucket, unless the environment gives one."""
NAMESPACE = "default"
"""Temporal namespace: the embedded server always has it, and its UI opens on it."""

_VARIABLES = {
    ServiceName.TEMPORAL: "STEPWELL_TEMPORAL_ADDRESS",
    ServiceName.POSTGRES: "STEPWELL_DATABASE_URL",
    ServiceName.S3: "STEPWELL_S3_ENDPOINT",
}


@dataclass(frozen=True)
class Addresses:
    """Where the services are, and what opens them."""

    temporal: str
    """`host:port` of Temporal's gRPC frontend."""
    temporal_ui: str | None
    """Address of its web pages; None if an external server's is not known."""
    namespace: str
    database_urls: Mapping[DatabaseRole, str] = field(repr=False)
    """`postgresql+psycopg://…` with the role's own password."""
    bucket: S3Address = field(repr=False)
    """The bucket, as the object store takes it."""

    @property
    def migrator(self) -> str:
        """Database address of the role that owns the schema."""
        return self.database_urls[DatabaseRole.MIGRATOR]

    @property
    def appender(self) -> str:
        """Database address of the workers' role."""
        return self.database_urls[DatabaseRole.APPENDER]

    @property
    def projector(self) -> str:
        """Database address of the role that keeps the tables for reading."""
        return self.database_urls[DatabaseRole.PROJECTOR]

    @property
    def auditor(self) -> str:
        """Database address of the role that only reads."""
        return self.database_urls[DatabaseRole.AUDITOR]


def variable(service: ServiceName) -> str:
    """Environment variable that replaces an embedded service by an external one."""
    return _VARIABLES[service]


def is_external(service: ServiceName, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment gives the service's address."""
    return bool(environment.get(variable(service)))


def embedded_services(environment: Mapping[str, str] = os.environ) -> list[ServiceName]:
    """The services that the environment does not give."""
    return [service for service in ServiceName if not is_external(service, environment)]


def resolve(home: Path | None = None, environment: Mapping[str, str] = os.environ) -> Addresses:
    """Addresses of all services; starts nothing.

    Args:
        home: Folder of the embedded services; `$STEPWELL_HOME` or `.stepwell` by default.
        environment: Replaces the process's own.

    Raises:
        ServiceError: a service is not given by the environment, and the home never had any.
    """
    embedded = embedded_services(environment)
    settings = load_settings(Home.of(home, environment)) if embedded else None
    if embedded and settings is None:
        wanted = ", ".join(variable(service) for service in embedded)
        raise ServiceError(
            f"no services in {Home.of(home, environment).root}: run `stepwell up` first, or set {wanted}."
        )
    temporal = _temporal(settings, environment)
    return Addresses(
        temporal=temporal.address,
        temporal_ui=temporal.ui,
        namespace=temporal.namespace,
        database_urls=_database_urls(settings, environment),
        bucket=_s3(settings, environment),
    )


@dataclass(frozen=True)
class _TemporalAddress:
    address: str
    ui: str | None
    namespace: str


def _temporal(settings: Settings | None, environment: Mapping[str, str]) -> _TemporalAddress:
    if settings is None or is_external(ServiceName.TEMPORAL, environment):
        return _TemporalAddress(
            address=environment[variable(ServiceName.TEMPORAL)],
            ui=environment.get("STEPWELL_TEMPORAL_UI"),
            namespace=environment.get("STEPWELL_TEMPORAL_NAMESPACE") or NAMESPACE,
        )
    return _TemporalAddress(
        address=f"127.0.0.1:{settings.ports.temporal}",
        ui=f"http://127.0.0.1:{settings.ports.temporal_ui}",
        namespace=NAMESPACE,
    )


def _database_urls(settings: Settings | None, environment: Mapping[str, str]) -> dict[DatabaseRole, str]:
    if settings is None or is_external(ServiceName.POSTGRES, environment):
        shared = environment[variable(ServiceName.POSTGRES)]
        return {
            role: with_driver(environment.get(f"STEPWELL_DATABASE_URL_{role.name}") or shared) for role in DatabaseRole
        }
    return {
        role: f"postgresql+psycopg://{role.login}:{settings.role_passwords[role]}"
        f"@127.0.0.1:{settings.ports.postgres}/stepwell"
        for role in DatabaseRole
    }


def _s3(settings: Settings | None, environment: Mapping[str, str]) -> S3Address:
    bucket = environment.get("STEPWELL_S3_BUCKET") or BUCKET
    if settings is None or is_external(ServiceName.S3, environment):
        return S3Address(
            bucket=bucket,
            endpoint=environment[variable(ServiceName.S3)],
            access_key=environment.get("STEPWELL_S3_ACCESS_KEY") or environment.get("AWS_ACCESS_KEY_ID"),
            secret_key=environment.get("STEPWELL_S3_SECRET_KEY") or environment.get("AWS_SECRET_ACCESS_KEY"),
        )
    return S3Address(
        bucket=bucket,
        endpoint=f"http://127.0.0.1:{settings.ports.s3}",
        access_key=settings.s3_access_key,
        secret_key=settings.s3_secret_key,
    )


def with_driver(url: str) -> str:
    """A PostgreSQL address with the driver that we use.

    Raises:
        ServiceError: it is the address of something else.
    """
    scheme, separator, rest = url.partition("://")
    if not separator or scheme.partition("+")[0] not in ("postgresql", "postgres"):
        raise ServiceError(
            f"STEPWELL_DATABASE_URL begins with {scheme[:20]!r}: wanted postgresql://user:password@host:port/name."
        )
    return f"postgresql+psycopg://{rest}"


def without_password(url: str) -> str:
    """The address as it may be shown: no driver, no user, no password."""
    scheme, _, rest = url.partition("://")
    return f"{scheme.partition('+')[0]}://{rest.rpartition('@')[2].partition('?')[0]}"
