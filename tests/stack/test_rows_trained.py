"""Rollouts of several rows of tokens, from their record in the ledger to a training step."""

from pathlib import Path

import pytest

from activities.folds import fold_rollout
from activities.stores import Stores
from activities.train_batch import read_batch
from stepwell.events import RolloutGraded
from stepwell.events.streams import rollout_stream
from stepwell.policy.weights import save_folder, weights_of
from stepwell.rl.batching import build_manifest
from stepwell.rl.config import PackingConfig
from stepwell.rl.outcomes import rollout_facts
from tests.byte_tokenizer import TOKENIZER
from tests.small_models import OPEN, make_trainer
from tests.stack.harness_stage import HarnessStage, OpenHarnessStage
from tests.stack.played_engine import tiny_model

SAID = [("go on", "forget", "go on", "done"), ("go on", "done"), ("forget", "done")]
ROWS = [2, 1, 2]
"""That each of them makes."""


@pytest.fixture
def engines_weights(tmp_path: Path) -> Path:
    """Folder of the weights by which the engine of the stage gives log-probabilities."""
    model = tiny_model(TOKENIZER.get_vocab_size())
    save_folder(weights_of(model), model.config.to_dict(), tmp_path / "weights")
    return tmp_path / "weights"


async def play(on: HarnessStage, sample: int, texts: tuple[str, ...]) -> str:
    """Plays a rollout and grades it; the name of its stream."""
    on.request = on.request.model_copy(update={"sample": sample})
    await on.attempt(*texts)
    ended = await on.ended()
    stream = rollout_stream(on.request.run, on.request.scope, on.request.prompt, sample)
    graded = RolloutGraded(
        verdict_key=ended.verdict_key, score=float(sample == 1), timed_out=False, verdict_head="h", reused=False
    )
    count = len(await on.ledger.read(stream))
    await on.ledger.append(stream, [graded], expected_seq=count, actor="sandbox:t")
    return stream


async def test_a_step_trains_each_token_that_the_engine_generated_once(
    harness_stage: OpenHarnessStage, engines_weights: Path
) -> None:
    async with harness_stage("ls", "forgets") as on:
        streams = [await play(on, sample, texts) for sample, texts in enumerate(SAID)]
        folds = [fold_rollout(await on.ledger.read(stream)) for stream in streams]
        manifest = build_manifest(
            step=0,
            parent_version=0,
            temperature=1.0,
            rollouts=[
                rollout_facts(stream, fold.ended, fold.graded, fold.failed, rows=fold.rows, overlong_filtering=True)
                for stream, fold in zip(streams, folds, strict=True)
            ],
            grpo=OPEN,
            packing=PackingConfig(),
        )
        stored = await on.blobs.put(manifest.canonical_bytes())
        batch = await read_batch(Stores(on.ledger, on.blobs, actor="trainer:t"), stored.digest)
        generations = [each.generation for each in on.engine.played]
    assert [sample.mask for sample in manifest.samples] == [None] * len(SAID)
    assert [len(sample.rows) for sample in manifest.samples] == [count if count > 1 else 0 for count in ROWS]
    assert len(batch.samples) == sum(ROWS)
    trained = [value for row in batch.samples if row is not None for value in row.logprobs]
    said = [value for generation in generations for value in generation.logprobs]
    assert sorted(trained) == sorted(said)
    before = make_trainer(engines_weights).digests()
    trainer = make_trainer(engines_weights)
    result = trainer.step(batch)
    assert (
        result.loss_tokens == result.generated_tokens == len(said) == sum(len(each.token_ids) for each in generations)
    )
    assert result.mismatch_max < 1e-4, "each row has the context that the engine had"
    assert trainer.digests().master != before.master
