"""Makes the version 0 that is shipped (see `stepwell.policy.micro.shipped`).

python -m stepwell.policy.micro.ship FOLDER
"""

import json
import platform
import sys
from pathlib import Path

import torch

from stepwell.policy.micro.config import WarmUpConfig
from stepwell.policy.micro.shipped import MADE_BY, MadeBy
from stepwell.policy.micro.warm_up import warm_up
from stepwell.policy.weights import load_folder, weights_digest
from stepwell.tasks.sources import forged_tasks


def make(folder: Path, *, seed: int, tasks_seed: int, config: WarmUpConfig) -> MadeBy:
    """Warms a policy up and writes it with its origin."""
    tasks = forged_tasks(tasks_seed, main=0, confirm=0, heldout=0)
    warm_up(seed, config, tasks.train, folder)
    made = MadeBy(
        seed=seed,
        tasks_seed=tasks_seed,
        warm_up=config,
        weights=weights_digest(load_folder(folder)),
        environment={
            "torch": torch.__version__,
            "processor": torch.backends.cpu.get_cpu_capability(),
            "machine": platform.machine(),
            "threads": config.threads,
        },
    )
    (folder / MADE_BY).write_text(json.dumps(made.model_dump(mode="json"), indent=1) + "\n")
    return made


if __name__ == "__main__":
    sys.stdout.write(make(Path(sys.argv[1]), seed=0, tasks_seed=0, config=WarmUpConfig()).weights + "\n")
