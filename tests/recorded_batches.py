"""The record of a run up to its batches, as a real run leaves it: recipe, rollouts with their turns, admitted steps.

What is missing is everything about weights: that is the trainer's, who is tested with it. Tokens are random; the batch
is cut by the function that cuts every batch.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from db.blobs import BlobStore
from db.ledger import Ledger
from stepwell.agent.protocol import Action, StopReason
from stepwell.agent.turn import TurnPayload
from stepwell.events import RolloutEnded, RunCreated, StepAdmitted, StepCompleted, StepDispatched, TurnRecorded
from stepwell.events.base import Event
from stepwell.events.children import Commitment, facts_of_children
from stepwell.events.streams import rollout_stream, run_stream
from stepwell.policy.trainers.protocol import TrainBatch
from stepwell.recipe.loading import resolve
from stepwell.recipe.recipe import Recipe
from stepwell.recipe.trainer_section import TrainerSection
from stepwell.rl.batching import RolloutFacts, build_manifest
from stepwell.rl.rows import train_sample
from stepwell.rl.samples import TrainSample
from stepwell.tasks.manifest import TaskManifest

SAMPLES = 4
"""Rollouts a prompt; half of them score."""


def recorded_recipe(**keys: Any) -> Recipe:
    """A recipe for rows of random tokens, whose log-probabilities no engine has made.

    Args:
        keys: of the sections `run`, `trainer` and `optimiser`.
    """
    trainer: dict[str, Any] = {"packing": {"micro_batch_tokens": 512}}
    trainer |= {key: keys.pop(key) for key in TrainerSection.model_fields if key in keys}
    optimiser = {"learning_rate": keys.pop("learning_rate", 1e-3)}
    settings = {"max_steps": 8, "prompts_per_step": 2, "samples_per_prompt": SAMPLES, "mismatch_bound": 100.0}
    raw: dict[str, Any] = {
        "name": "recorded",
        "run": {**settings, **keys},
        "policy": {"kind": "micro"},
        "tasks": {"source": "forged"},
        "agent": {"tools": "compact", "max_turns": 3, "max_context_tokens": 384, "max_turn_tokens": 12},
        "rl": {"importance": "none", "mismatch_max": None},
        "optimiser": optimiser,
        "trainer": trainer,
        "engine": {"max_context": 384},
        "validation": {"tasks": 1, "samples": 1, "initial": False},
    }
    return resolve(raw, source="tests/recorded_batches.py")


@dataclass(frozen=True)
class RecordedBatches:
    """What was written."""

    run: str
    recipe: Recipe
    batches: tuple[TrainBatch, ...]
    """By step, as the trainer must read them."""


async def record_batches(
    ledger: Ledger,
    blobs: BlobStore,
    run: str,
    recipe: Recipe,
    prompts: Sequence[int],
    *,
    seed: str = "",
    rates: Mapping[int, float] | None = None,
) -> RecordedBatches:
    """Writes a run whose steps are all admitted.

    Args:
        ledger: where.
        blobs: where.
        run: its name.
        recipe: its recipe.
        prompts: prompts of each step: how large it is.
        seed: of the tokens. Runs of one seed train the same rows, and so share the blobs of their versions.
        rates: learning rates that operators had set when a step was dispatched.
    """
    task_set = await blobs.put(TaskManifest(train=(), main=(), confirm=(), heldout=()).blob())
    created = RunCreated(recipe=recipe.model_dump(mode="json"), recipe_digest=recipe.digest, task_set=task_set.digest)
    steps: list[Event] = [created]
    batches: list[TrainBatch] = []
    for step, count in enumerate(prompts):
        batch = await _record_rollouts(ledger, blobs, run, recipe, f"{seed}/{step}", step, count)
        batches.append(batch)
        manifest = await blobs.put(batch.manifest.canonical_bytes())
        nothing = Commitment(count=0, heads=(await blobs.put(b"[]")).digest, facts=facts_of_children([]))
        admitted = StepAdmitted(
            step=step,
            manifest=manifest.digest,
            group_facts=nothing.facts,
            group_heads=nothing,
            rollouts=len(batch.samples),
            masked=0,
            reward_mean=0.5,
        )
        rate = (rates or {}).get(step)
        settings: dict[str, float | int] = {} if rate is None else {"optimiser.learning_rate": rate}
        steps += [StepDispatched(step=step, version=0, tasks=[], settings=settings), admitted]
    await ledger.append(run_stream(run), steps, expected_seq=0, actor="control:test/1")
    return RecordedBatches(run, recipe, tuple(batches))


async def complete_step(ledger: Ledger, run: str, step: int) -> None:
    """Records that a step is completed, as the run's workflow does."""
    head = await ledger.head(run_stream(run))
    assert head is not None
    completed = StepCompleted(step=step, version=step + 1, weights_digest="d", weights_seq=1, weights_head="h")
    await ledger.append(run_stream(run), [completed], expected_seq=head.seq + 1, actor="control:test/1")


async def _record_rollouts(
    ledger: Ledger, blobs: BlobStore, run: str, recipe: Recipe, seed: str, step: int, prompts: int
) -> TrainBatch:
    facts: list[RolloutFacts] = []
    rows: list[TrainSample] = []
    for prompt in range(prompts):
        for sample in range(SAMPLES):
            stream = rollout_stream(run, str(step), prompt, sample)
            dice = random.Random(f"{seed}/{prompt}/{sample}")
            turns = [_turn(dice) for _ in range(dice.randint(1, 3))]
            row = train_sample(turns)
            await _record_rollout(ledger, blobs, stream, turns, row)
            rows.append(row)
            facts.append(
                RolloutFacts(
                    stream=stream,
                    prompt=prompt,
                    sample=sample,
                    turns=len(turns),
                    tokens=len(row.token_ids),
                    generated_tokens=sum(row.generated),
                    content=row.content_digest(),
                    reward=float(sample % 2),
                    mask=None,
                )
            )
    manifest = build_manifest(
        step=step,
        parent_version=step,
        temperature=1.0,
        rollouts=facts,
        grpo=recipe.rl,
        packing=recipe.trainer.packing,
    )
    return TrainBatch(manifest=manifest, samples=tuple(rows))


def _turn(dice: random.Random) -> TurnPayload:
    generated = dice.randint(4, 12)
    return TurnPayload(
        delta_ids=tuple(dice.randrange(700) for _ in range(dice.randint(20, 100))),
        token_ids=tuple(dice.randrange(700) for _ in range(generated)),
        logprobs=tuple(-dice.uniform(0.5, 6.0) for _ in range(generated)),
        finish_reason="stop",
        action=Action(tool="view", arguments={}),
        observation="",
        finished=False,
    )


async def _record_rollout(
    ledger: Ledger, blobs: BlobStore, stream: str, turns: Sequence[TurnPayload], row: TrainSample
) -> None:
    events: list[Event] = []
    for number, turn in enumerate(turns):
        payload = await blobs.put(turn.blob())
        events.append(
            TurnRecorded(
                turn=number,
                epoch=0,
                payload=payload.digest,
                version=0,
                prompt_tokens=len(turn.delta_ids),
                generated_tokens=len(turn.token_ids),
                tool=turn.action.tool,
                tree="7" * 64,
                engine="e",
                generate_s=0.1,
                tool_s=0.1,
            )
        )
    ended = RolloutEnded(
        reason=StopReason.FINISHED,
        epoch=0,
        turns=len(turns),
        generated_tokens=sum(row.generated),
        total_tokens=len(row.token_ids),
        content=row.content_digest(),
        changed=(await blobs.put(b"{}")).digest,
        tree="7" * 64,
        verdict_key="k",
    )
    await ledger.append(stream, [*events, ended], expected_seq=0, actor="sandbox:test/1")
