"""A whole run while a random process of it is killed every 20 seconds, against the same run left alone.

    python bench/random_kills.py [--every 20] [--seed 0] [--undisturbed SECONDS] [--set KEY=VALUE]... [RECIPE]

Victims are the run's workers (control, trainer, engine, sandbox) and the three servers, each as likely as any other;
the signal is SIGKILL. Both runs are made one after the other in homes of their own, unless `--undisturbed` gives the
time of the second. Prints every kill, the time of both, their ratio, and what `stepwell audit verify` says.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psutil

from workers.services.plan import launcher_argv

RECIPE = Path(__file__).parents[1] / "recipes" / "micro.toml"
WORKERS = ("control", "trainer", "engine", "sandbox")
SERVERS = {"temporal": "temporal", "postgres": "postgres", "weed": "object store"}
RUN = "kills"


def victims(pid: int) -> list[tuple[str, psutil.Process]]:
    """Children of a run's command, or of the supervisor of its servers, that can be killed, by what they are."""
    found: list[tuple[str, psutil.Process]] = []
    for process in psutil.Process(pid).children():
        try:
            command = process.cmdline()
        except psutil.NoSuchProcess:
            continue
        kinds = [kind for kind in WORKERS if "worker" in command and kind in command]
        server = SERVERS.get(Path(command[0]).name) if command else None
        found += [(name, process) for name in [*kinds, server] if name]
    return found


def run(recipe: Path, settings: list[str], disturb: Callable[[int, float], None] | None) -> float:
    """Makes a run to its end; seconds from its first to its last moment.

    Raises:
        subprocess.CalledProcessError: it, or the audit of it, failed.
    """
    with tempfile.TemporaryDirectory(prefix="stepwell-kills-") as home:
        environment = {**os.environ, "STEPWELL_HOME": home}
        stepwell = [sys.executable, "-m", "cli.main"]
        command = [*stepwell, "run", str(recipe), "--name", RUN]
        command += [part for setting in settings for part in ("--set", setting)]
        subprocess.run([*stepwell, "up"], check=True, env=environment, stdout=subprocess.DEVNULL)
        try:
            began = time.monotonic()
            argv = launcher_argv(command, death_signal=signal.SIGKILL, identity=None)
            with subprocess.Popen(argv, env=environment) as process:
                while process.poll() is None:
                    if disturb is not None:
                        disturb(process.pid, time.monotonic() - began)
                    time.sleep(0.2)
            took = time.monotonic() - began
            if process.returncode:
                raise subprocess.CalledProcessError(process.returncode, command)
            subprocess.run([*stepwell, "audit", "verify", RUN], check=True, env=environment)
            return took
        finally:
            subprocess.run([*stepwell, "down"], check=True, env=environment, stdout=subprocess.DEVNULL)


class Killer:
    """Kills a random process whenever its time has come."""

    def __init__(self, every_s: float, seed: int, services: Callable[[], list[tuple[str, psutil.Process]]]) -> None:
        self._every_s = every_s
        self._random = random.Random(seed)
        self._services = services
        self._next_s = every_s
        self.killed: Counter[str] = Counter()

    def __call__(self, pid: int, at_s: float) -> None:
        """Looks at the time."""
        if at_s < self._next_s:
            return
        self._next_s += self._every_s
        among = victims(pid) + self._services()
        if not among:
            return
        kinds = sorted({kind for kind, _ in among})
        kind = self._random.choice(kinds)
        process = self._random.choice([process for name, process in among if name == kind])
        print(f"{at_s:6.0f} s  SIGKILL  {kind} (pid {process.pid})", flush=True)
        self.killed[kind] += 1
        process.send_signal(signal.SIGKILL)


def servers() -> list[tuple[str, psutil.Process]]:
    """Servers of the home that this process's runs use: children of its supervisor."""
    return [
        found
        for supervisor in psutil.process_iter(["cmdline"])
        if "workers.services.supervisor" in (supervisor.info["cmdline"] or [])
        and any("stepwell-kills-" in part for part in supervisor.info["cmdline"])
        for found in victims(supervisor.pid)
    ]


def main() -> int:
    """Makes both runs, prints the ratio."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("recipe", nargs="?", type=Path, default=RECIPE)
    parser.add_argument("--every", type=float, default=20.0, help="seconds between kills")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of victims")
    parser.add_argument("--undisturbed", type=float, help="seconds of the run left alone, if they are known")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="changes the recipe")
    args = parser.parse_args()
    alone = args.undisturbed if args.undisturbed is not None else run(args.recipe, args.set, None)
    killer = Killer(args.every, args.seed, servers)
    disturbed = run(args.recipe, args.set, killer)
    told = ", ".join(f"{count} {kind}" for kind, count in sorted(killer.killed.items()))
    kills = killer.killed.total()
    print(f"undisturbed {alone:.0f} s; with {kills} kills ({told}) {disturbed:.0f} s: {disturbed / alone:.2f} times")
    return 0


if __name__ == "__main__":
    sys.exit(main())
