"""What a run on this machine needs, looked at before anything of it begins: a message now beats a retry for days."""

import tempfile
from importlib.util import find_spec
from pathlib import Path

from stepwell.policy.trainers.megatron.requirement import MISSING
from stepwell.recipe.loading import RecipeError
from stepwell.recipe.recipe import Recipe, folder_of
from stepwell.recipe.sections import R2ETasks
from stepwell.recipe.unexecutable import unexecutable
from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.sandbox.images import ImageError, find_apptainer
from stepwell.sandbox.protocol import SandboxLimits


def refuse_unexecutable(recipe: Recipe) -> None:
    """Refuses what a recipe asks of a cluster and no worker would do.

    Raises:
        RecipeError: the recipe asks for something of the kind; says all of it.
    """
    cannot = unexecutable(recipe)
    if cannot:
        raise RecipeError(
            "\n".join([f"recipe {recipe.name} asks for what Stepwell cannot do:", *(f"  {line}" for line in cannot)])
        )


async def preflight(recipe: Recipe) -> None:
    """Checks the policy's files, the packages of trainer and engine, the program of the tasks' images, and that
    sandboxes can be made.

    Raises:
        RecipeError: the recipe names what is not here.
        SandboxError: no sandbox can be made on this machine.
    """
    _check_policy(recipe)
    _check_trainer(recipe)
    if recipe.engine.kind == "vllm" and find_spec("vllm") is None:
        raise RecipeError(
            'engine.kind = "vllm", but vLLM is not installed: pip install "stepwell[gpu]" on a machine with GPUs, or '
            "scripts/install-environment full for its CPU wheel"
        )
    if isinstance(recipe.tasks, R2ETasks):
        try:
            find_apptainer()
        except ImageError as error:
            raise RecipeError(f'tasks.source = "r2e", whose tasks are Apptainer images: {error}') from None
    with tempfile.TemporaryDirectory(prefix="stepwell-preflight-") as folder:
        factory = BubblewrapFactory(Path(folder))
        try:
            sandbox = await factory.create({"README": b"preflight\n"}, SandboxLimits())
            await sandbox.destroy()
        finally:
            await factory.close()


def _check_policy(recipe: Recipe) -> None:
    policy = recipe.policy
    if policy.kind == "folder":
        try:
            folder_of(policy)
        except FileNotFoundError as error:
            raise RecipeError(str(error)) from None
    if policy.kind == "smollm2":
        from stepwell.policy.smollm2_wheel import MissingModel, gguf_file

        try:
            gguf_file()
        except MissingModel as error:
            raise RecipeError(f'policy.kind = "smollm2": {error}') from None
        if find_spec("gguf") is None or find_spec("accelerate") is None:
            raise RecipeError('policy.kind = "smollm2" reads a GGUF file: pip install "stepwell[smollm2]"')


def _check_trainer(recipe: Recipe) -> None:
    layout, policy = recipe.trainer.layout, recipe.policy
    if layout is None:
        return
    if find_spec("megatron") is None:
        raise RecipeError(f'trainer.backend = "megatron", but {MISSING}')
    if policy.kind == "folder":
        from stepwell.policy.trainers.megatron.model_folder import read_model
        from stepwell.policy.trainers.protocol import UnsupportedModel
        from stepwell.policy.weights import WeightsError

        try:
            refusal = layout.refusal(read_model(folder_of(policy)).shape.counts)
        except (UnsupportedModel, WeightsError) as error:
            raise RecipeError(str(error)) from None
        if refusal:
            raise RecipeError(refusal)
