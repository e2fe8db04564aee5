"""What sandboxes cost, beside a bare `bwrap` and a bare `apptainer exec`: `python bench/sandboxes.py`.

Prints medians in milliseconds and their ratio to the bare form of the same kind, which starts the same program in the
same image and nothing else. The two alternate, so that whatever else the machine does weighs on both. An exec in a
running sandbox is compared to the bare form too, since that is what else would run a command. Then 256 at once.
"""

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

from stepwell.sandbox.apptainer import ApptainerFactory
from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.sandbox.bwrap_program import find_bwrap
from stepwell.sandbox.images import find_apptainer
from stepwell.sandbox.protocol import Sandbox, SandboxFactory, SandboxLimits

sys.path.append(str(Path(__file__).parents[1]))
from tests.small_image import make_root, make_sif

FILES = {"main.py": b"print('hello')\n", "pkg/__init__.py": b"", "pkg/core.py": b"x = 1\n"}
ROUNDS = 30
AT_ONCE = 256


def bare_bwrap(folder: Path) -> list[str]:
    """All namespaces around the interpreter that sandboxes have inside, with an overlay for a work tree."""
    base = Path(sys.base_prefix)
    mounts = ["--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"]
    mounts += ["--ro-bind", str(base), "/opt/python", "--setenv", "LD_LIBRARY_PATH", "/opt/python/lib"]
    mounts += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    for name in ("lower", "upper", "scratch"):
        (folder / name).mkdir(parents=True)
    mounts += ["--overlay-src", str(folder / "lower")]
    mounts += ["--overlay", str(folder / "upper"), str(folder / "scratch"), "/work"]
    program = [f"/opt/python/bin/python3.{sys.version_info.minor}", "-I", "-S", "-c", "pass"]
    return [str(find_bwrap()), "--unshare-all", "--die-with-parent", *mounts, *program]


def bare_apptainer(image: Path) -> list[str]:
    """What one would type."""
    options = ["--userns", "--containall", "--cleanenv", "--no-mount", "home,tmp,bind-paths"]
    return [str(find_apptainer()), "--silent", "exec", *options, str(image), "true"]


async def timed_ms(work: Callable[[], Awaitable[object]]) -> float:
    """Time of one piece of work."""
    started = time.perf_counter()
    await work()
    return (time.perf_counter() - started) * 1e3


async def compare(kind: str, factory: SandboxFactory, bare: list[str]) -> None:
    """Prints the lines of one kind."""
    box = await factory.create(FILES, SandboxLimits())

    async def run_bare() -> None:
        process = await asyncio.create_subprocess_exec(*bare, stdout=subprocess.DEVNULL)
        if await process.wait() != 0:
            raise SystemExit(f"{' '.join(bare)} ended with status {process.returncode}")

    async def create_and_run() -> None:
        made = await factory.create(FILES, SandboxLimits())
        made_boxes.append(made)
        await made.exec(["true"], timeout_s=60)

    made_boxes: list[Sandbox] = []
    work: dict[str, Callable[[], Awaitable[object]]] = {
        "bare": run_bare,
        "create and first command": create_and_run,
        "exec in a running sandbox": lambda: box.exec(["true"], timeout_s=60),
        "read a file": lambda: box.read_file("main.py"),
        "write a file": lambda: box.write_file("main.py", b"print('again')\n"),
        "tree digest": box.tree_digest,
        "changed files": box.changed_files,
    }
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(ROUNDS):
        for name, piece in work.items():
            times[name].append(await timed_ms(piece))
            if name == "create and first command":
                await made_boxes.pop().destroy()
    for name, taken in times.items():
        print(f"{f'{kind}: {name}':44s} {median(taken):8.2f} ms {median(taken) / median(times['bare']):6.2f}")


async def open_many(kind: str, factory: SandboxFactory) -> None:
    """Opens many at once and runs a command in each."""
    started = time.perf_counter()
    boxes = await asyncio.gather(*(factory.create(FILES, SandboxLimits()) for _ in range(AT_ONCE)))
    opened_s = time.perf_counter() - started
    results = await asyncio.gather(*(box.exec(["cat", "main.py"], timeout_s=300) for box in boxes))
    good = sum(result.output == FILES["main.py"] for result in results)
    print(f"{kind}: {good} of {AT_ONCE} open at once answered; opened in {opened_s:.1f} s")
    await asyncio.gather(*(box.destroy() for box in boxes))


async def measure(folder: Path) -> None:
    """Prints the table."""
    make_root(folder / "root")
    image = folder / "small.sif"
    make_sif(folder / "root", image)
    kinds: dict[str, tuple[SandboxFactory, list[str]]] = {
        "bubblewrap": (BubblewrapFactory(folder / "bubblewrap"), bare_bwrap(folder / "bare")),
        "apptainer": (ApptainerFactory(folder / "apptainer", str(image)), bare_apptainer(image)),
    }
    for kind, (factory, bare) in kinds.items():
        await compare(kind, factory, bare)
        await open_many(kind, factory)
        await factory.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        asyncio.run(measure(Path(home)))
