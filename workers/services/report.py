"""What runs where: the content of `stepwell status`."""

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from workers.services.addresses import Addresses, embedded_services, is_external, resolve
from workers.services.embedded import EmbeddedService, size_bytes
from workers.services.errors import NotReadyError, ServiceError
from workers.services.external import external_version, shown_address
from workers.services.home import Home
from workers.services.lifecycle import services_of
from workers.services.plan import SupervisorState, read_state
from workers.services.settings import ServiceName, load_settings
from workers.services.supervisor import living_owners


class ServiceReport(BaseModel):
    """One service."""

    model_config = ConfigDict(frozen=True)

    service: ServiceName
    kind: Literal["embedded", "external"]
    state: Literal["running", "not answering", "stopped"]
    address: str
    """Without passwords."""
    ui: str | None = None
    """Web pages of the service."""
    pid: int | None = None
    version: str | None = None
    size_bytes: int | None = None
    """Space of its data on the disk; None for an external one."""
    deaths: int = 0
    """How often it died and was started again under this supervisor."""
    problem: str | None = None
    """What it answers instead, or why it does not."""


class Report(BaseModel):
    """All services of one home."""

    model_config = ConfigDict(frozen=True)

    home: str
    supervisor_pid: int | None
    stays: bool
    """Whether the services run on until `stepwell down`, rather than for the life of their owners."""
    owner_pids: list[int]
    """Processes that hold the services for their own life."""
    services: list[ServiceReport]


def status(root: Path | None = None, environment: Mapping[str, str] = os.environ) -> Report:
    """Looks at every service, embedded or external; starts nothing.

    Raises:
        ServiceError: there are none: no home, and no addresses in the environment.
    """
    home = Home.of(root, environment)
    addresses = resolve(home.root, environment)
    state = read_state(home.state)
    alive = state if state is not None and state.supervisor.alive() else None
    settings = load_settings(home) if embedded_services(environment) else None
    servers = services_of(home, settings) if settings else {}
    with ThreadPoolExecutor(len(ServiceName)) as pool:
        looks = [
            pool.submit(_external, addresses, name)
            if is_external(name, environment)
            else pool.submit(_embedded, home, servers[name], addresses, alive)
            for name in ServiceName
        ]
        reports = [look.result() for look in looks]
    return Report(
        home=str(home.root),
        supervisor_pid=alive.supervisor.pid if alive else None,
        stays=home.daemon.exists(),
        owner_pids=[owner.pid for owner in living_owners(home)] if home.owners.exists() else [],
        services=reports,
    )


def _external(addresses: Addresses, name: ServiceName) -> ServiceReport:
    version = problem = None
    try:
        version = external_version(addresses, name) or None
    except (NotReadyError, ServiceError) as error:
        problem = str(error)
    return ServiceReport(
        service=name,
        kind="external",
        state="not answering" if problem else "running",
        address=shown_address(addresses, name),
        ui=addresses.temporal_ui if name is ServiceName.TEMPORAL else None,
        version=version,
        problem=problem,
    )


def _embedded(
    home: Home, server: EmbeddedService, addresses: Addresses, running: SupervisorState | None
) -> ServiceReport:
    process = None
    deaths = 0
    problem = version = None
    if running is not None and (found := running.services.get(server.name)) is not None:
        process = found.process if found.process and found.process.alive() else None
        deaths = found.starts - 1
        try:
            server.make_ready()
        except (NotReadyError, ServiceError) as error:
            problem = str(error)
    try:
        version = server.version()
    except ServiceError as error:
        problem = str(error)
    return ServiceReport(
        service=server.name,
        kind="embedded",
        state="stopped" if process is None else "not answering" if problem else "running",
        address=server.address(),
        ui=addresses.temporal_ui if server.name is ServiceName.TEMPORAL else None,
        pid=process.pid if process else None,
        version=version,
        size_bytes=size_bytes(home.data(server.name)),
        deaths=deaths,
        problem=problem,
    )
