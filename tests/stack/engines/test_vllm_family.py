"""The real vLLM server with its engine in a process of its own: whichever of them is killed, all of them go."""

import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

pytestmark = [pytest.mark.timeout(900), pytest.mark.long]  # vLLM takes 40 s to start alone on the machine

OWNER = """
import asyncio, sys
from pathlib import Path
from stepwell.policy.engines import EngineConfig, vllm_process
from stepwell.policy.engines.vllm_engine import VllmEngine
from stepwell.policy.protocol import EngineError

of_one_process = vllm_process._environment


def as_on_gpus(config, private):
    return of_one_process(config, private) | {"VLLM_ENABLE_V1_MULTIPROCESSING": "1"}


async def main():
    folder = Path(sys.argv[1])
    config = EngineConfig(kind="vllm", max_context=320, max_batch=4, kv_cache_mib=64, start_timeout_s=800.0)
    engine = await VllmEngine.open(config, folder)
    await engine.load(1, folder)
    await engine.check()
    print("up", flush=True)
    try:
        while True:  # as an engine worker does
            await asyncio.sleep(0.5)
            await engine.check()
    except EngineError:
        await engine.close()


vllm_process._environment = as_on_gpus
asyncio.run(main())
"""
GONE_WITHIN_S = 20.0


@dataclass(frozen=True)
class Family:
    """A process that owns an engine, and what it started."""

    owner: psutil.Process
    guard: psutil.Process
    server: psutil.Process
    others: list[psutil.Process]
    """The engine's process, its workers, what else there is."""
    private: Path
    """Folder of the server's socket and temporary files."""


@pytest.fixture
def family(tied_models) -> Iterator[Family]:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(tied_models.folder(1))], stdout=subprocess.PIPE)
    started: list[psutil.Process] = []
    try:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"up\n"
        started = psutil.Process(owner.pid).children(recursive=True)
        (guard,) = psutil.Process(owner.pid).children()
        (server,) = guard.children()
        others = [process for process in started if process not in (guard, server)]
        command = guard.cmdline()
        private = Path(command[command.index("--uds") + 1]).parent
        yield Family(psutil.Process(owner.pid), guard, server, others, private)
    finally:
        owner.kill()
        owner.wait()
        _, alive = psutil.wait_procs(started, timeout=GONE_WITHIN_S)
        for process in alive:
            process.kill()


@pytest.mark.parametrize("killed", ["owner", "guard", "server"])
def test_vllm_leaves_no_process_behind_whichever_of_them_is_killed(family: Family, killed: str) -> None:
    assert any("EngineCore" in " ".join([process.name(), *process.cmdline()]) for process in family.others)
    assert family.private.is_dir()
    began = time.monotonic()
    getattr(family, killed).kill()
    _, alive = psutil.wait_procs([family.guard, family.server, *family.others], timeout=GONE_WITHIN_S)
    assert not alive
    print(f"{killed} killed: {len(family.others) + 2} processes gone after {time.monotonic() - began:.2f} s")
    until = time.monotonic() + GONE_WITHIN_S
    while family.private.exists():
        assert time.monotonic() < until
        time.sleep(0.05)
