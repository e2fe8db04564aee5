"""A submission as a whole model folder: an adapter is put into its base; and a copy that a run can train further."""

import json
import shutil
import tempfile
from pathlib import Path

from torch import Tensor

from stepwell.policy.weights import TOKENIZER_FILES, Weights, WeightsError, load_folder, save_folder, weights_digest
from stepwell.ptb.evaluation.small_files import Refused
from stepwell.ptb.evaluation.submission import CONFIG, Submission, accept, config_bytes
from stepwell.ptb.identity.adapters import CONFIG_FILE, WEIGHTS_FILE, AdaptedModel
from stepwell.ptb.identity.tensors import ModelFolder, UnreadableModel, plain_name


class UnusableBase(Exception):
    """The base model's folder cannot be used: no submission's doing."""


def merge_adapter(adapter: Submission, base: Path, folder: Path) -> None:
    """Writes the model that an adapter makes of the base, in float32; with the adapter's own tokenizer and settings
    where it has some. The folder appears complete or not at all, and must not exist.

    Raises:
        Refused: the adapter does not fit the base, or cannot be read.
        UnusableBase: the base cannot be read.
    """
    try:
        weights, source = load_folder(base), ModelFolder(base)
        config = json.loads((base / CONFIG).read_text("utf-8"))
    except (WeightsError, UnreadableModel, OSError, ValueError) as error:
        raise UnusableBase(f"the base model's folder {base} cannot be used: {error}") from error
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".merging-") as scratch:
        beside = Path(scratch)
        for name in (WEIGHTS_FILE, CONFIG_FILE):
            (beside / name).symlink_to(adapter.files[name].resolve())
        try:
            adapted = AdaptedModel(beside, source)
            tensors: dict[str, Tensor] = {name: adapted.read(plain_name(name)) for name in weights.tensors}
        except (UnreadableModel, RuntimeError) as error:  # torch's: of shapes that do not go together
            raise Refused(f"the adapter cannot be put on the base model: {str(error)[:300]}") from error
        for name in TOKENIZER_FILES:
            own = adapter.files.get(name, base / name)
            if own.is_file():
                shutil.copyfile(own, beside / name)
        config = {key: value for key, value in config.items() if key != "torch_dtype"} | {"dtype": "float32"}
        save_folder(Weights(tensors, weights.aliases), config, folder, tokenizer_from=beside)


def write_policy(model: Path, base: Path | None, folder: Path) -> str:
    """Writes a submission as a folder that a run's recipe can name (`policy.kind = "folder"`): the files that are
    evaluated and no others. Gives the digest of its weights, which the run's version 0 records as its origin.

    Args:
        model: What was submitted.
        base: What an adapter is put on.
        folder: Must not exist.

    Raises:
        Refused: it cannot be evaluated, so it can be no policy.
        UnusableBase: it is an adapter, and the base is missing or cannot be read.
        FileExistsError: the folder exists.
    """
    submission = accept(model)
    if folder.exists():
        raise FileExistsError(f"{folder} exists: name a new folder for the policy")
    if submission.facts.kind == "adapter":
        if base is None:
            raise UnusableBase("the submission is an adapter: name the folder of its base model")
        merge_adapter(submission, base, folder)
        return weights_digest(load_folder(folder))
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
    try:
        (partial / CONFIG).write_bytes(config_bytes(submission))
        for name, path in submission.files.items():
            shutil.copyfile(path, partial / name)
        digest = weights_digest(load_folder(partial))
        partial.chmod(0o755)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return digest
