"""The warm-up of a policy on demonstrations made from gold patches, as part of making version 0."""

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path

from tokenizers import Tokenizer

from activities.agent_settings import episode_limits, sandbox_limits, tool_set
from activities.stores import RunFacts, Stores
from activities.trainer_memory import in_thread
from stepwell.agent.chat import FORMATS, ChatRenderer
from stepwell.events.canonical import digest_of_json
from stepwell.policy.gold_demonstrations import Demonstration, Demonstrator
from stepwell.policy.origin import Origin
from stepwell.policy.supervised import LIKELIHOOD, supervise
from stepwell.policy.trainers.torch_trainer import TorchTrainer
from stepwell.recipe.loading import RecipeError
from stepwell.recipe.policies import WarmUpSection
from stepwell.rl.seeds import derive_seed
from stepwell.sandbox.bubblewrap import BubblewrapFactory


async def warm_up(
    stores: Stores, facts: RunFacts, section: WarmUpSection, base: Path, origin: Origin, folder: Path
) -> Origin:
    """Warms a policy up, and leaves it as a Hugging Face folder. An attempt that is cancelled computes no further.

    Args:
        stores: Where the tasks are.
        facts: Of the run.
        section: Settings.
        base: Folder of the policy.
        origin: Of that folder.
        folder: Where version 0 is put; must not exist. Beside it are sandboxes meanwhile.

    Raises:
        RecipeError: no task can be demonstrated.
        SandboxError: this machine makes no sandboxes.
        NonFinite: loss or gradient.
    """
    recipe = facts.recipe
    demonstrations = await _demonstrations(stores, facts, base, folder.with_name(f"{folder.name}-trees"))
    if not demonstrations:
        raise RecipeError(
            f"policy.warm_up: none of {section.tasks} tasks can be demonstrated within the bounds of [agent]: raise "
            "max_context_tokens, max_turn_tokens or observation_chars"
        )
    rows = [demonstration.row for demonstration in demonstrations]
    trainer = await asyncio.to_thread(
        TorchTrainer.from_folder, base, section.optimiser, LIKELIHOOD, threads=recipe.trainer.threads
    )
    seed = derive_seed(recipe.run.seed, "warmup")
    metrics = await in_thread(trainer, supervise, trainer, rows, section, recipe.trainer.packing, seed)
    await in_thread(trainer, trainer.export, folder)
    shown = digest_of_json([[one.task, one.row.content_digest()] for one in demonstrations])
    return replace(
        origin,
        name=f"warm-up of {origin.name} on {len(rows)} demonstrations {shown}",
        metrics=metrics | {"left_out": float(section.tasks - len(rows))},
    )


async def _demonstrations(stores: Stores, facts: RunFacts, base: Path, trees: Path) -> list[Demonstration]:
    recipe = facts.recipe
    assert recipe.agent.chat is not None  # the recipe fills it in
    tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
    tasks = [await stores.task(entry.blob) for entry in facts.manifest.demonstrated]
    factory = BubblewrapFactory(trees)
    try:
        return await Demonstrator(
            tools=lambda task: tool_set(recipe, task),
            renderer=ChatRenderer(tokenizer, FORMATS[recipe.agent.chat]),
            limits=episode_limits(recipe),
            factory=factory,
            sandbox=sandbox_limits(recipe),
        ).demonstrate(tasks)
    finally:
        await factory.close()
        await asyncio.to_thread(shutil.rmtree, trees, ignore_errors=True)
