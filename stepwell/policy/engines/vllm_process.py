"""vLLM's server as a child process: how it is started, heard from and ended.

It listens on a socket in a private temporary folder, so there is no port to collide and nobody but this user can ask
it: vLLM's endpoints for weights have no password. A guard process between (`vllm_guard.py`) takes everything down
when this process dies or closes it.
"""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import IO

import stepwell
from stepwell.policy.engines import vllm_guard
from stepwell.policy.engines.config import EngineConfig
from stepwell.policy.protocol import EngineError

MODEL_NAME = "policy"

_DEFAULT_CPU_CACHE_MIB = 512
_CPU_STEP_TOKENS = 2048  # of prompts, in one step
_SOCKET_PATH_BYTES = 107  # what Linux takes
_LOG_TAIL_BYTES = 4000
_CLOSE_S = 15.0


class VllmProcess:
    """A server that was started; `socket` is where it answers once it is up."""

    def __init__(self, process: asyncio.subprocess.Process, socket: Path, log: IO[bytes]) -> None:
        self.socket = socket
        """In the server's private folder."""
        self._process = process
        self._log = log

    @classmethod
    async def start(cls, config: EngineConfig, folder: Path) -> "VllmProcess":
        """Starts the server, and does not wait until it answers.

        The parent-death signal goes by the thread that starts the child: that is the event loop's.

        Raises:
            EngineError: the temporary folder's path is too long for a socket.
        """
        private = Path(tempfile.mkdtemp(prefix="stepwell-vllm-"))
        socket = private / "http"
        if len(os.fsencode(socket)) > _SOCKET_PATH_BYTES:
            private.rmdir()
            raise EngineError(f"the path of a socket in {private} is too long; set TMPDIR to a shorter folder")
        # Without a name from the start: it goes when this process closes it or dies.
        log = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            vllm_guard.__file__,
            str(private),
            *_command(config, folder, socket),
            env=_environment(config, private),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        return cls(process, socket, log)

    @property
    def ended(self) -> bool:
        """True once the server has ended, whatever its status: a server whose engine died exits with 0."""
        return self._process.returncode is not None

    def log_tail(self) -> str:
        """The end of what the server printed."""
        size = os.fstat(self._log.fileno()).st_size
        start = max(0, size - _LOG_TAIL_BYTES)
        return os.pread(self._log.fileno(), _LOG_TAIL_BYTES, start).decode(errors="replace")

    async def close(self) -> None:
        """Ends the server and everything it started, and removes its files. Twice is once."""
        if self._process.returncode is None:
            self._process.terminate()
            try:
                await asyncio.wait_for(self._process.wait(), _CLOSE_S)
            except TimeoutError:
                self._process.kill()
                await self._process.wait()
        _clean_up_for_guard(self.socket.parent)
        self._log.close()


def _clean_up_for_guard(private: Path) -> None:
    """Does what a guard that was killed could not: while its folder stands, so may processes of the server's group."""
    try:
        group = int((private / vllm_guard.GROUP_FILE).read_text())
    except (FileNotFoundError, ValueError):
        return  # it cleaned up, or was killed before the server began
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    shutil.rmtree(private, ignore_errors=True)


def _command(config: EngineConfig, folder: Path, socket: Path) -> list[str]:
    """`vllm serve` refuses to run with the CPU wheel, whose distribution has another name; the module does not."""
    command = [sys.executable, "-m", "vllm.entrypoints.launchers.api_server.entry"]
    command += ["--model", str(folder), "--served-model-name", MODEL_NAME, "--uds", str(socket)]
    command += ["--dtype", config.dtype, "--max-model-len", str(config.max_context)]
    command += ["--max-num-seqs", str(config.max_batch), "--skip-tokenizer-init", "--generation-config", "vllm"]
    command += ["--enable-scale-out", "--logprobs-mode", "processed_logprobs", "--disable-uvicorn-access-log"]
    command += ["--worker-extension-cls", "stepwell.policy.engines.vllm_extension.FolderExtension"]
    command += ["--weight-transfer-config", json.dumps({"backend": "stepwell_folder"})]
    command += ["--tensor-parallel-size", str(config.tensor_parallel or 1)]
    cache_mib = config.kv_cache_mib
    if config.device == "cpu":
        command += ["--enforce-eager"]  # compilation costs 20 to 50 s of start and gains little on a CPU
        cache_mib = cache_mib or _DEFAULT_CPU_CACHE_MIB  # unset, vLLM would ask for nearly all memory
        # A prompt that is cut into chunks winds its seeded generator back, which a CPU's cannot: the engine dies.
        command += ["--no-enable-chunked-prefill"]
        command += ["--max-num-batched-tokens", str(max(config.max_context, _CPU_STEP_TOKENS))]
    if cache_mib is not None:
        command += ["--kv-cache-memory-bytes", f"{cache_mib}M"]
    return command


def _environment(config: EngineConfig, private: Path) -> dict[str, str]:
    package_root = str(Path(stepwell.__file__).parent.parent)
    paths = [package_root, os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "TMPDIR": str(private),
        "OMP_NUM_THREADS": str(config.threads),
        "VLLM_SERVER_DEV_MODE": "1",  # the endpoints for pausing and for weights
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    if config.device == "cpu":
        # vLLM's worker then runs inside its engine's process: half again as fast for small models.
        environment["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
        # Eager or not, vLLM compiles a function of its sampler at the first request: 20 s for nothing on a CPU.
        environment["TORCHDYNAMO_DISABLE"] = "1"
        environment["VLLM_CACHE_ROOT"] = str(private / "cache")
        environment["VLLM_CONFIG_ROOT"] = str(private / "config")
    return environment
