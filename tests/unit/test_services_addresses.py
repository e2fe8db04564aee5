"""Where the services are: environment first, then the home."""

from pathlib import Path

import pytest

from db import roles
from workers.services.addresses import Addresses, embedded_services, resolve, with_driver, without_password
from workers.services.errors import ServiceError
from workers.services.home import Home
from workers.services.settings import DatabaseRole, ServiceName, Settings, save_settings

EXTERNAL = {
    "STEPWELL_TEMPORAL_ADDRESS": "temporal.example:7233",
    "STEPWELL_DATABASE_URL": "postgresql://u:secret@db.example:5432/train?sslmode=require",
    "STEPWELL_S3_ENDPOINT": "https://s3.example",
    "STEPWELL_S3_BUCKET": "weights",
}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of a home in `tmp_path` whose services never ran."""
    home = Home.of(tmp_path)
    home.create()
    settings = Settings.generate()
    save_settings(home, settings)
    return settings


def test_with_all_three_in_the_environment_no_home_is_needed(tmp_path: Path) -> None:
    addresses = resolve(tmp_path / "none", EXTERNAL | {"AWS_ACCESS_KEY_ID": "id", "STEPWELL_S3_SECRET_KEY": "key"})
    assert embedded_services(EXTERNAL) == []
    assert addresses.temporal == "temporal.example:7233"
    assert set(addresses.database_urls) == set(DatabaseRole)
    assert set(addresses.database_urls.values()) == {
        "postgresql+psycopg://u:secret@db.example:5432/train?sslmode=require"
    }
    assert (addresses.bucket.endpoint, addresses.bucket.bucket) == ("https://s3.example", "weights")
    assert (addresses.bucket.access_key, addresses.bucket.secret_key) == ("id", "key")


def test_a_role_can_have_an_external_address_of_its_own(tmp_path: Path) -> None:
    addresses = resolve(tmp_path, EXTERNAL | {"STEPWELL_DATABASE_URL_AUDITOR": "postgres://audit@db.example/train"})
    assert addresses.auditor == "postgresql+psycopg://audit@db.example/train"
    assert addresses.appender.startswith("postgresql+psycopg://u:secret@")


def test_without_credentials_boto3_looks_for_its_own(tmp_path: Path) -> None:
    assert resolve(tmp_path, EXTERNAL).bucket.access_key is None


def test_what_the_environment_does_not_give_comes_from_the_home(tmp_path: Path, settings: Settings) -> None:
    environment = {"STEPWELL_TEMPORAL_ADDRESS": "temporal.example:7233", "AWS_ACCESS_KEY_ID": "of something else"}
    addresses = resolve(tmp_path, environment)
    assert embedded_services(environment) == [ServiceName.POSTGRES, ServiceName.S3]
    assert addresses.temporal == "temporal.example:7233"
    assert addresses.bucket.access_key == settings.s3_access_key
    assert addresses.projector == (
        f"postgresql+psycopg://stepwell_projector:{settings.role_passwords[DatabaseRole.PROJECTOR]}"
        f"@127.0.0.1:{settings.ports.postgres}/stepwell"
    )


def test_each_role_has_a_password_of_its_own_and_none_the_superusers(settings: Settings) -> None:
    passwords = [settings.superuser_password, *settings.role_passwords.values()]
    assert len(set(passwords)) == 1 + len(DatabaseRole)


def test_the_home_is_taken_from_the_environment(tmp_path: Path) -> None:
    assert Home.of(None, {"STEPWELL_HOME": str(tmp_path)}).root == tmp_path
    assert Home.of(None, {}).root == Path.cwd() / ".stepwell"


def test_no_home_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match="run `stepwell up` first, or set STEPWELL_TEMPORAL_ADDRESS"):
        resolve(tmp_path, {})


@pytest.mark.parametrize("url", ["mysql://u@h/d", "h:5432/d", ""])
def test_an_address_of_something_else_than_postgres_is_refused(url: str) -> None:
    with pytest.raises(ServiceError, match="wanted postgresql://user:password@host:port/name"):
        with_driver(url)


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg", "postgresql+asyncpg"])
def test_an_address_gets_our_driver(scheme: str) -> None:
    assert with_driver(f"{scheme}://u:p@h/d") == "postgresql+psycopg://u:p@h/d"


def test_secrets_are_not_shown(tmp_path: Path, settings: Settings) -> None:
    addresses: Addresses = resolve(tmp_path, {})
    for secret in (*settings.role_passwords.values(), settings.s3_secret_key):
        assert secret not in repr(addresses)
    assert without_password("postgresql+psycopg://u:p@h:1/d?password=p") == "postgresql://h:1/d"


def test_the_roles_are_those_that_the_migrations_grant_rights_to() -> None:
    assert set(roles.GRANTS) == {role.login for role in DatabaseRole if role is not DatabaseRole.MIGRATOR}
