"""Ports and passwords of one home's embedded services: chosen once, kept in a file that only its owner may read."""

import secrets
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from workers.services.errors import ServiceError
from workers.services.home import Home
from workers.services.plan import write_private
from workers.services.ports import choose_port, is_pair_free


class ServiceName(StrEnum):
    """The three services; also the names of their data folders and logs."""

    TEMPORAL = "temporal"
    POSTGRES = "postgres"
    S3 = "seaweedfs"


class DatabaseRole(StrEnum):
    """Roles of the database, without the prefix `stepwell_`."""

    MIGRATOR = "migrator"
    """Owns the schema."""
    APPENDER = "appender"
    """Workers: inserts and reads."""
    PROJECTOR = "projector"
    """Keeps the tables for reading."""
    AUDITOR = "auditor"
    """Reads."""

    @property
    def login(self) -> str:
        """Name of the role in PostgreSQL."""
        return f"stepwell_{self.value}"


class Ports(BaseModel):
    """Loopback ports."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    temporal: int
    temporal_ui: int
    temporal_http: int
    temporal_metrics: int
    postgres: int
    s3: int
    s3_master: int
    s3_volume: int
    s3_filer: int

    def of(self, service: ServiceName) -> dict[str, int]:
        """The ports of one service, by field."""
        prefix = "s3" if service is ServiceName.S3 else service.value
        return {name: port for name, port in self.model_dump().items() if name.startswith(prefix)}


class Settings(BaseModel):
    """What is generated at the first start."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    ports: Ports
    superuser_password: str
    role_passwords: dict[DatabaseRole, str]
    s3_access_key: str
    s3_secret_key: str

    @classmethod
    def generate(cls) -> "Settings":
        """New ports and secrets."""
        ports: dict[str, int] = {}
        for name in Ports.model_fields:
            ports[name] = choose_port(ports.values())
        return cls(
            ports=Ports(**ports),
            superuser_password=secrets.token_urlsafe(24),
            role_passwords={role: secrets.token_urlsafe(24) for role in DatabaseRole},
            s3_access_key=secrets.token_hex(10).upper(),
            s3_secret_key=secrets.token_urlsafe(30),
        )

    def with_free_ports(self, services: list[ServiceName]) -> "Settings":
        """The same, but for ports of these services that someone else has taken in the meantime."""
        ports: dict[str, int] = self.ports.model_dump()
        for service in services:
            for name, port in self.ports.of(service).items():
                if not is_pair_free(port):
                    ports[name] = choose_port(ports.values())
        return self.model_copy(update={"ports": Ports(**ports)})


def load_settings(home: Home) -> Settings | None:
    """Settings of a home; None if it has none yet.

    Raises:
        ServiceError: the file is not one of this version.
    """
    try:
        text = home.settings.read_text()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ServiceError(f"cannot read {home.settings}: {error.strerror}. It belongs to another user?") from error
    try:
        return Settings.model_validate_json(text)
    except ValidationError as error:
        fault = error.errors()[0]
        raise ServiceError(
            f"{home.settings} does not hold settings of this version of Stepwell: {'.'.join(map(str, fault['loc']))} "
            f"{fault['msg']}. Put the file back from a copy, or set STEPWELL_HOME to another folder; "
            "`stepwell down --purge` removes this home's data."
        ) from error


def save_settings(home: Home, settings: Settings) -> None:
    """Keeps the settings, mode 0600."""
    write_private(home.settings, settings.model_dump_json(indent=1))
