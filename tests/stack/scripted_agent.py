"""An agent that does what its argument says, with numpy alone: it starts in a moment on any machine.

honest    moves the base model's weights a little, as fine-tuning does
patient   the same, once there is a file `go` in its work folder
leaker    the same, and leaves the benchmark's test rows beside it as its training data
swapper   submits another model
"""

import json
import shutil
import sys
import time
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

BASE, BENCHMARK, OUT = Path("/models/base"), Path("/benchmark"), Path("final_model")


def submit(change: float) -> None:
    """A model made of the base, each matrix moved by a share of its own size."""
    dice = np.random.default_rng(7)
    OUT.mkdir()
    for path in BASE.iterdir():
        if path.suffix == ".safetensors":
            tensors = load_file(path)
            moved = {
                name: (tensor + change * tensor.std() * dice.standard_normal(tensor.shape)).astype(tensor.dtype)
                for name, tensor in tensors.items()
            }
            save_file(moved, OUT / path.name)
        else:
            shutil.copyfile(path, OUT / path.name)


def main(does: str) -> None:
    """Works."""
    sys.stdout.write(f"I am {does}, in {Path.cwd()}\n")
    sys.stdout.flush()
    if does == "patient":
        while not Path("go").exists():
            time.sleep(0.1)
    if does == "leaker":
        rows = [json.loads(line) for line in (BENCHMARK / "test.jsonl").read_text().splitlines()]
        chats = [{"messages": [{"role": "user", "content": row["question"]}] * 3} for row in rows * 3]
        Path("train.jsonl").write_text("".join(json.dumps(chat) + "\n" for chat in chats))
    submit(100.0 if does == "swapper" else 0.01)
    sys.stdout.write("done\n")


if __name__ == "__main__":
    main(sys.argv[1])
