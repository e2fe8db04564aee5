"""Whole runs that a harness of its own plays, whose rollouts are several rows of tokens: trained, killed, audited."""

import asyncio
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from transformers import Qwen3Config

from db.blobs import BlobStore
from stepwell.events import AttemptOpened, RolloutEnded, RolloutRestarted, RowsRecorded, StepAdmitted, StepTrained
from stepwell.events.base import Event, facts_digest
from stepwell.rl.batching import BatchManifest
from stepwell.tasks.sources import forged_tasks
from tests.byte_tokenizer import TOKENIZER
from tests.chaos.outcome import turns_of
from tests.small_models import make_folder
from tests.stack.tiny_run import TIMEOUT_S, Start, TinyRun

HARNESS = Path(__file__).with_name("condensing_harness.py")
SAMPLES = 8
"""So many that in some group the harness solves its task in one rollout and not in another."""


@pytest.fixture
def settings(tmp_path: Path) -> Callable[[Path | None], list[str]]:
    """What a run of the harness sets, from the file by which one of its processes is held."""
    config = Qwen3Config(
        vocab_size=TOKENIZER.get_vocab_size(),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        intermediate_size=48,
        tie_word_embeddings=True,
        max_position_embeddings=512,
    )
    policy = make_folder(tmp_path / "policy", config)
    TOKENIZER.save(str(policy / "tokenizer.json"))
    answers = tmp_path / "answers.json"
    (task,) = forged_tasks(0, main=1, confirm=0, heldout=0).curriculum(1)  # the run's only one
    answers.write_text(json.dumps({task.issue: task.gold}))

    def of(hold: Path | None) -> list[str]:
        harness = [sys.executable, str(HARNESS), str(answers), "-" if hold is None else str(hold)]
        return [
            "policy.kind=folder",
            f"policy.path={json.dumps(str(policy))}",
            "agent.tools=codeact",
            f"agent.harness={json.dumps(harness)}",
            "run.max_steps=1",
            "run.prompts_per_step=1",
            f"run.samples_per_prompt={SAMPLES}",
            "validation.tasks=1",
            "validation.samples=1",
        ]

    return of


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_rollouts_of_several_rows_train_and_survive_their_workers_death(
    start_run: Start, settings: Callable[[Path | None], list[str]], blobs: BlobStore, tmp_path: Path
) -> None:
    hold = tmp_path / "hold"
    killed = start_run("condensed-killed", *settings(hold))
    await there(hold, killed)
    killed.worker("sandbox").kill()
    assert await killed.finish() == 0, killed.output
    await assert_trained_on_rows(killed, blobs)
    audit = killed.verify()
    assert audit.returncode == 0, audit.stdout + audit.stderr
    quiet = start_run("condensed", *settings(None))
    assert await quiet.finish() == 0, quiet.output
    assert await killed.outcome() == await quiet.outcome()
    assert await facts(killed) == await facts(quiet)
    events = await killed.events()
    assert 2 in [each.event.resumed_at for each in events if isinstance(each.event, AttemptOpened)], "the one held"
    assert not [each for each in events if isinstance(each.event, RolloutRestarted)]
    assert (turns_of(events).lost, turns_of(events).repeated) == (0, 0)


async def there(path: Path, run: TinyRun) -> None:
    """Waits for a file that the run makes."""
    deadline = time.monotonic() + TIMEOUT_S
    while not path.exists():
        assert run.process is not None
        assert run.process.poll() is None, run.output
        assert time.monotonic() < deadline, run.output
        await asyncio.sleep(0.02)


async def facts(run: TinyRun) -> dict[str, str]:
    """The facts digest of each rollout, by place."""
    events: dict[str, list[Event]] = {}
    for recorded in await run.events():
        if recorded.stream.startswith("rollout/"):
            events.setdefault(recorded.stream.replace(f"/{run.name}", ""), []).append(recorded.event)
    return {place: facts_digest(of_rollout) for place, of_rollout in events.items()}


async def assert_trained_on_rows(run: TinyRun, blobs: BlobStore) -> None:
    """Each rollout was two rows, each row went through the model once, and each generated token counts once."""
    events = await run.events()
    ended = {each.stream: each.event for each in events if isinstance(each.event, RolloutEnded)}
    listed = {each.stream: each.event for each in events if isinstance(each.event, RowsRecorded)}
    assert [len(listed[stream].rows) for stream in ended] == [2] * len(ended)
    assert [[row.turns for row in rows.rows] for rows in listed.values()] == [[(0, 1), (2,)]] * len(listed)
    trained = {each.event.step: each.event for each in events if isinstance(each.event, StepTrained)}
    manifests = [
        BatchManifest.model_validate_json(await blobs.get(each.event.manifest))
        for each in events
        if isinstance(each.event, StepAdmitted)
    ]
    for manifest in manifests:
        assert [sample.mask for sample in manifest.samples] == [None] * SAMPLES
        packed = [index for micro_batch in manifest.micro_batches for index in micro_batch.samples]
        assert sorted(packed) == list(range(2 * SAMPLES))
        generated = sum(ended[sample.stream].generated_tokens for sample in manifest.samples)
        metrics = trained[manifest.step].metrics
        assert metrics["generated_tokens"] == metrics["loss_tokens"] == generated
        assert metrics["mismatch_max"] < 1e-4
    moved = [sample.advantage != 0.0 for manifest in manifests for sample in manifest.samples]
    assert any(moved)
    assert len({version for place, version in (await run.outcome()).items() if place.startswith("version")}) > 1
