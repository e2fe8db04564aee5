"""Where version 0 comes from."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer

from stepwell.agent.chat import CHATML, MICRO, ChatFormat, ChatRenderer
from stepwell.policy.micro.shipped import FOLDER, shipped
from stepwell.policy.micro.warm_up import WarmUpStep, warm_up
from stepwell.policy.smollm2 import unpack_smollm2
from stepwell.policy.weights import load_folder, weights_digest
from stepwell.recipe.recipe import ForgedTasks, MicroPolicy, Recipe, folder_of
from stepwell.tasks.sources import forged_tasks

PROBE_TEXT = "Repair the function: the sum of 2 and 3 is 6, expected 5."
"""What engines and trainer compare their log-probabilities on."""


@dataclass(frozen=True)
class Origin:
    """How a version 0 was made."""

    name: str
    """`warm-up`, `shipped` and its digest, the digest of a folder's weights, or a warm-up of that."""
    probe_ids: tuple[int, ...]
    """Tokens of the probe."""
    metrics: dict[str, float]
    """Of the warm-up."""


def make_version_0(recipe: Recipe, folder: Path, cache: Path) -> Origin:
    """Writes the Hugging Face folder of version 0 to `folder`, which must not exist; of a policy from outside, as it is
    before its warm-up on demonstrations.

    Raises:
        FileNotFoundError: a folder policy lacks files.
        WeightsError: its weights cannot be used.
    """
    policy = recipe.policy
    if isinstance(policy, MicroPolicy):
        if policy.version_0 == "shipped":
            shutil.copytree(FOLDER, folder)
            _set_context(folder, policy.warm_up.model.context)
            return Origin(f"shipped {shipped().weights}", _probe_ids(folder, MICRO), {})
        assert isinstance(recipe.tasks, ForgedTasks)
        losses: list[WarmUpStep] = []
        seed = recipe.run.seed
        tasks = forged_tasks(recipe.tasks.seed, main=0, confirm=0, heldout=0)
        warm_up(seed, policy.warm_up, tasks.train, folder, losses.append)
        tail = [step.loss for step in losses[-50:]]
        metrics = {"steps": float(len(losses)), "loss": sum(tail) / len(tail)}
        return Origin("warm-up", _probe_ids(folder, MICRO), metrics)
    source = folder_of(policy) if policy.kind == "folder" else unpack_smollm2(cache)
    folder.symlink_to(source.resolve(), target_is_directory=True)
    return Origin(weights_digest(load_folder(folder)), _probe_ids(folder, CHATML), {})


def _set_context(folder: Path, positions: int) -> None:
    """Lets a model with rotary positions, which have no weights, take so many of them."""
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    if config["max_position_embeddings"] != positions:
        config["max_position_embeddings"] = positions
        path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _probe_ids(folder: Path, chat: ChatFormat) -> tuple[int, ...]:
    return ChatRenderer(Tokenizer.from_file(str(folder / "tokenizer.json")), chat).prompt_ids("", PROBE_TEXT)
