"""Starts and stops the embedded services of one home.

    addresses = up()                 they run on after this process, until `down()`
    with held() as addresses: ...    they run for the block, and no longer than this process

Both may be called while the services run, by anyone, at the same time: one starts them, the others wait and then use
them. They end when no holder is left, unless `up` was asked for. With every address given by environment, nothing
starts.
"""

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from workers.services.addresses import Addresses, embedded_services, resolve
from workers.services.embedded import EmbeddedService
from workers.services.errors import NotReadyError, PortTakenError, ServiceError
from workers.services.external import check_external
from workers.services.home import Home, is_locked, locked
from workers.services.plan import SupervisorState, read_plan, read_state, write_plan
from workers.services.postgres import PostgresService
from workers.services.processes import process_id
from workers.services.seaweedfs import SeaweedService
from workers.services.settings import ServiceName, Settings, load_settings, save_settings
from workers.services.temporal import TemporalService

LOCK_TIMEOUT_S = 120.0
READY_TIMEOUT_S = 60.0
SUPERVISOR_START_S = 10.0
STOP_TIMEOUT_S = 40.0
"""More than the longest grace of a server."""
DEATHS_BEFORE_GIVING_UP = 3
PORT_ATTEMPTS = 3
PACKAGES = Path(__file__).parents[2]
"""Where `workers` is imported from."""


def services_of(home: Home, settings: Settings) -> dict[ServiceName, EmbeddedService]:
    """The three servers of a home, whether they run or not."""
    return {
        ServiceName.TEMPORAL: TemporalService(home, settings),
        ServiceName.S3: SeaweedService(home, settings),
        ServiceName.POSTGRES: PostgresService(home, settings),
    }


def up(root: Path | None = None) -> Addresses:
    """Starts what is not external and does not run yet; it runs until `down`. Returns when all of it can be used.

    Args:
        root: The home; `$STEPWELL_HOME` or `.stepwell` by default.

    Raises:
        ServiceError: a service cannot be started or reached; nothing is left behind.
    """
    home = Home.of(root)
    if embedded_services():
        home.create()
        with locked(home.lock, LOCK_TIMEOUT_S):
            _start_wanted(home, home.daemon)
    addresses = resolve(home.root)
    check_external(addresses)
    return addresses


@contextlib.contextmanager
def held(root: Path | None = None) -> Generator[Addresses]:
    """As `up`, for the block: with its end, or the death of this process, they end too, unless others use them.

    Raises:
        ServiceError: as `up`.
    """
    home = Home.of(root)
    if not embedded_services():
        addresses = resolve(home.root)
        check_external(addresses)
        yield addresses
        return
    home.create()
    own = process_id(os.getpid())
    if own is None:
        raise ServiceError("this process is not in /proc: mount /proc and try again.")
    claim = home.owners / f"{own.pid}-{own.start_ticks}-{uuid.uuid4().hex[:8]}"
    try:
        with locked(home.lock, LOCK_TIMEOUT_S):
            _start_wanted(home, claim)
        addresses = resolve(home.root)
        check_external(addresses)
        yield addresses
    finally:
        claim.unlink(missing_ok=True)
        if not home.daemon.exists() and not any(home.owners.iterdir()):
            with locked(home.lock, LOCK_TIMEOUT_S):
                if not home.daemon.exists() and not any(home.owners.iterdir()):
                    _stop(home)


def revive(root: Path | None = None) -> bool:
    """Starts the services of a home again if their supervisor was killed; for a process that holds them.

    Returns:
        Whether it was.

    Raises:
        ServiceError: as `up`.
    """
    home = Home.of(root)
    state = read_state(home.state)
    if state is None or state.supervisor.alive():  # one that ends in good order removes its state
        return False
    claims = [path for path in (home.daemon, *home.owners.glob(f"{os.getpid()}-*")) if path.exists()]
    if not claims:
        return False
    with locked(home.lock, LOCK_TIMEOUT_S):
        if is_locked(home.supervisor_lock):
            return False
        _start_wanted(home, claims[0])
    return True


def down(root: Path | None = None) -> list[str]:
    """Stops the services of a home, whoever uses them; the data stays. Names those that ran.

    Raises:
        ServiceError: another process has been starting or stopping them for too long.
    """
    home = Home.of(root)
    if not home.services.is_dir():
        return []
    with locked(home.lock, LOCK_TIMEOUT_S):
        return _stop(home)


def purge(root: Path | None = None) -> list[str]:
    """Stops the services and removes their data, passwords and logs; what else lies in the home stays.

    Raises:
        ServiceError: as `down`; or the data cannot be removed.
    """
    home = Home.of(root)
    stopped = down(root)
    try:
        for folder in (*(home.data(service) for service in ServiceName), home.services, home.logs):
            if folder.exists():
                shutil.rmtree(folder)
        if home.root.exists() and not any(home.root.iterdir()):
            home.root.rmdir()
    except OSError as error:
        raise ServiceError(f"cannot remove {error.filename}: {error.strerror}. Remove it by hand.") from error
    return stopped


def _start_wanted(home: Home, claim: Path) -> None:
    """Starts what is missing, with the lock held; `claim` is the file that keeps the supervisor running."""
    was_claimed = claim.exists()
    started = not is_locked(home.supervisor_lock)
    try:
        if started:
            _clear_away(home)
        for attempt in range(PORT_ATTEMPTS):
            try:
                _start_missing(home, claim)
                return
            except PortTakenError:
                # Ours to start anew only if nobody has used it yet.
                if not started or attempt == PORT_ATTEMPTS - 1:
                    raise
                _stop(home)
    except BaseException as error:
        if started:
            _stop(home)
        if not was_claimed:
            claim.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _from_os_error(error, home) from error
        raise


def _start_missing(home: Home, claim: Path) -> None:
    wanted = embedded_services()
    plan = read_plan(home.plan) if is_locked(home.supervisor_lock) else {}
    missing = [name for name in wanted if name not in plan]
    known = load_settings(home)
    settings = known or Settings.generate()
    services = services_of(home, settings)
    for name in missing:
        services[name].check()
    if known is None and any(_holds_data(home.data(name)) for name in ServiceName):
        raise ServiceError(
            f"{home.root} holds data of services but not {home.settings}, where their passwords are. "
            "Put that file back from a copy, move the data away, or remove it with `stepwell down --purge`."
        )
    settings = settings.with_free_ports(missing)
    if settings != known:
        save_settings(home, settings)
    services = services_of(home, settings)
    claim.touch()
    # PostgreSQL comes last: the others start while its first data folder is made, which takes a second.
    for group in ([name for name in missing if name is not ServiceName.POSTGRES], [ServiceName.POSTGRES]):
        for name in (name for name in group if name in missing):
            services[name].prepare()
            plan[name] = services[name].launch()
        if group and missing:
            write_plan(home.plan, plan)
            _run_plan(home)
    before = read_state(home.state)
    deaths = {name: before.services[name].starts if before and name in before.services else 1 for name in wanted}
    with ThreadPoolExecutor(len(wanted)) as pool:
        waits = [pool.submit(_await_ready, home, services[name], deaths[name]) for name in wanted]
        for wait in waits:
            wait.result()


def _holds_data(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


def _run_plan(home: Home) -> None:
    """Has the supervisor run the plan: a new one, or the one that runs already."""
    if is_locked(home.supervisor_lock):
        state = read_state(home.state)
        if state is not None:
            state.supervisor.send(signal.SIGHUP)
        return
    with (home.logs / "supervisor.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "workers.services.supervisor", str(home.root)],
            env={**os.environ, "PYTHONPATH": str(PACKAGES)},
            cwd=home.root,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    deadline = time.monotonic() + SUPERVISOR_START_S
    while (state := read_state(home.state)) is None or state.supervisor.pid != process.pid:
        if process.poll() is not None or time.monotonic() > deadline:
            raise ServiceError(f"the supervisor of the services did not start: see {home.logs / 'supervisor.log'}.")
        time.sleep(0.02)


def _await_ready(home: Home, service: EmbeddedService, starts_before: int) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while True:
        try:
            service.make_ready()
            return
        except NotReadyError as error:
            reason = str(error)
        state = read_state(home.state)
        if state is None or not state.supervisor.alive():
            raise ServiceError(f"the supervisor of the services died: see {home.logs / 'supervisor.log'}.")
        now = state.services.get(service.name)
        if now is not None and now.starts - starts_before >= DEATHS_BEFORE_GIVING_UP - 1:
            raise _why_it_died(home, service.name, now.last_exit)
        if time.monotonic() > deadline:
            raise ServiceError(
                f"{service.name} is not ready after {READY_TIMEOUT_S:.0f} s: {reason}. "
                f"See {home.logs / f'{service.name}.log'}; `stepwell down` and `stepwell up` start it anew."
            )
        time.sleep(0.05)


def _why_it_died(home: Home, name: ServiceName, code: int | None) -> ServiceError:
    log = home.logs / f"{name}.log"
    tail = log.read_text(errors="replace")[-4000:] if log.exists() else ""
    last_lines = "\n".join(f"    {line}" for line in tail.splitlines()[-5:])
    if "No space left on device" in tail:
        return ServiceError(f"{name} died: the disk of {home.root} is full. Free some space and try again.")
    if "ddress already in use" in tail:
        return PortTakenError(
            f"{name} died: another process took one of its ports. `stepwell down` and `stepwell up` choose others."
        )
    return ServiceError(
        f"{name} died {DEATHS_BEFORE_GIVING_UP} times, last with {code}. Its log {log} ends:\n{last_lines}"
    )


def _stop(home: Home) -> list[str]:
    """Ends the supervisor and with it the servers, with the lock held; names those that ran."""
    state = read_state(home.state)
    if is_locked(home.supervisor_lock):
        deadline = time.monotonic() + SUPERVISOR_START_S
        while state is None and time.monotonic() < deadline:  # it has only just begun
            time.sleep(0.05)
            state = read_state(home.state)
        if state is None:
            raise ServiceError(f"the supervisor of {home.root} does not say which process it is: end it by hand.")
        state.supervisor.send(signal.SIGTERM)
        state.supervisor.end(STOP_TIMEOUT_S)
    ran = _running(state)
    _clear_away(home)
    for claim in (home.daemon, *home.owners.iterdir()):
        claim.unlink(missing_ok=True)
    return ran


def _running(state: SupervisorState | None) -> list[str]:
    return [name for name, service in state.services.items() if service.process] if state else []


def _clear_away(home: Home) -> None:
    """Sees that nothing is left of a supervisor that has ended, or was killed."""
    state = read_state(home.state)
    for service in state.services.values() if state else ():
        if service.process is not None:
            service.process.end(10.0)  # the kernel has told it to end
    for launch in read_plan(home.plan).values():
        for leftover in launch.leftovers:
            Path(leftover).unlink(missing_ok=True)
    for path in (home.state, home.plan, home.supervisor_lock):
        path.unlink(missing_ok=True)


def _from_os_error(error: OSError, home: Home) -> ServiceError:
    if error.errno == errno.ENOSPC:
        return ServiceError(f"the disk of {home.root} is full. Free some space and try again.")
    return ServiceError(f"cannot start the services in {home.root}: {error}. Check the folder and its owner.")
