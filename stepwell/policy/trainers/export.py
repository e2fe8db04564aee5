"""A weight version as a folder that engines load."""

import json
from pathlib import Path
from typing import Any

from stepwell.policy.trainers.protocol import ComputeDtype
from stepwell.policy.weights import CONFIG_FILE, Weights, save_folder


def export_weights(weights: Weights, parent: Path, folder: Path, compute_dtype: ComputeDtype) -> None:
    """Writes weights with the config and tokenizer of the folder that the trainer was made from (see `save_folder`).

    Raises:
        FileExistsError: the folder exists.
        OSError: it could not be written.
    """
    config: dict[str, Any] = json.loads((parent / CONFIG_FILE).read_text("utf-8"))
    config.pop("torch_dtype", None)
    config["dtype"] = compute_dtype
    save_folder(weights, config, folder, tokenizer_from=parent)
