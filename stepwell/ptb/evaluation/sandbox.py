"""The command that runs the process inside: no network, no files but the model's and the libraries', no user of the
host's, and an end with the process that started it."""

import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

import stepwell
from stepwell.ptb.evaluation.order import EngineSettings
from stepwell.sandbox.bwrap_program import ISOLATION, find_bwrap
from stepwell.sandbox.system import describe_system

MODEL = "/model"
_SITE, _CODE = "/opt/site", "/opt/code"
_TMP_BYTES = 8 << 30
_SHARED_MEMORY_BYTES = 4 << 30
_PROGRAM = "stepwell.ptb.evaluation.inside.main"
_ENTER = 'while [ "$1" != -- ]; do echo $$ > "$1/cgroup.procs" || exit 125; shift; done; shift; exec "$@"'
"""Puts itself in control groups before it becomes the sandbox: what the sandbox starts is in them too."""


def inside_command(
    files: Mapping[str, Path], folder: Path, engine: EngineSettings, groups: Sequence[Path] = ()
) -> list[str]:
    """The command, for a process whose standard input and output are the wire.

    Args:
        files: Of the model, by their names inside.
        folder: Of the caller, empty; receives the minimal system.
        engine: Says how many threads there are, and whether GPUs are to be seen.
        groups: Control groups that it is to be in.

    Raises:
        SandboxError: there is no bwrap program, or no interpreter that can run inside.
    """
    system = describe_system(folder, ())
    command = [str(find_bwrap()), *ISOLATION, "--clearenv", *system.mounts]
    command += ["--size", str(_TMP_BYTES), "--tmpfs", "/tmp", "--dir", "/tmp/home"]
    command += ["--size", str(_SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm"]
    site = sysconfig.get_path("purelib")
    command += ["--ro-bind", site, _SITE, "--ro-bind", str(Path(stepwell.__file__).parent), f"{_CODE}/stepwell"]
    for name, path in sorted(files.items()):
        command += ["--ro-bind", str(path), f"{MODEL}/{name}"]
    if engine.device == "cuda":
        for device in sorted(Path("/dev").glob("nvidia*")):
            command += ["--dev-bind", str(device), str(device)]
        command += ["--ro-bind-try", "/sys", "/sys"]
    for name, value in {**dict(system.environment), **_environment(engine)}.items():
        command += ["--setenv", name, value]
    command += ["--remount-ro", "/", system.python, "-s", "-S", "-P", "-m", _PROGRAM, MODEL]
    if not groups:
        return command
    return ["/bin/sh", "-c", _ENTER, "enter", *map(str, groups), "--", *command]


def _environment(engine: EngineSettings) -> dict[str, str]:
    return {
        "PYTHONPATH": f"{_CODE}:{_SITE}",
        "OMP_NUM_THREADS": str(engine.threads),
        "MKL_NUM_THREADS": str(engine.threads),
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
    }
