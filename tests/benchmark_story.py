"""A run of ours as the benchmark has them, told by hand: 251 validation tasks, the schedule of a batch of 256."""

from collections.abc import Mapping, Sequence
from typing import Any

from db.blobs import blob_digest
from stepwell.events import RunCreated, StepAdmitted
from stepwell.events.run_finished import RunEnd
from stepwell.mlperf.deriving import RunFacts
from stepwell.mlperf.submission import Submission
from stepwell.recipe.recipe import Recipe
from stepwell.rl.batching import BatchManifest, MicroBatch
from stepwell.tasks.manifest import TaskEntry, TaskManifest
from tests.synthetic_run import Story
from tests.told import told

VALIDATION_TASKS = 251
PROMPTS, GENERATIONS = 16, 16
SOLVED = (100, 160, 175)
"""Validation tasks that versions 18, 19 and 20 solve: 174 of 251 are more than 0.69."""
FIRST = 18
"""The first version that the rules want evaluated: ceil(2.5 + 3840 / 256)."""

SUBMISSION = Submission(
    submission_org="Example",
    submission_platform="one machine",
    submission_division="open",
    submission_status="research",
    cache_clear=True,
    lowest_numerical_precision_in_comm="fp32",
)


def entries(name: str, count: int) -> tuple[TaskEntry, ...]:
    """Tasks without contents."""
    return tuple(TaskEntry(id=f"{name}-{n}", blob=blob_digest(f"{name}-{n}".encode())) for n in range(count))


TASKS = TaskManifest(train=entries("train", 700) * 2, main=entries("main", VALIDATION_TASKS), confirm=(), heldout=())
"""A curriculum that goes twice through 700 tasks."""

BATCH = BatchManifest(
    step=0,
    parent_version=0,
    version=1,
    temperature=1.0,
    samples=(),
    micro_batches=(
        MicroBatch(samples=(0, 1, 2), length=64, train=True),
        MicroBatch(samples=(3, 4), length=64, train=True),
        MicroBatch(samples=(5,), length=64, train=True),
        MicroBatch(samples=(6, 7, 8, 9), length=64, train=False),
    ),
)
"""Of the first step."""


def benchmark_recipe(**changes: Mapping[str, Any]) -> dict[str, Any]:
    """A resolved recipe by the benchmark's rules, with changed keys by section."""
    table: dict[str, dict[str, Any]] = {
        "run": {"seed": 7, "max_steps": 30, "prompts_per_step": PROMPTS, "samples_per_prompt": GENERATIONS},
        "policy": {"kind": "folder", "path": "model"},
        "tasks": {"source": "r2e", "path": "set"},
        "agent": {"tools": "codeact", "max_turn_tokens": 4096, "chat": "qwen3_xml"},
        "optimiser": {"learning_rate": 1e-6, "max_grad_norm": 0.125},
        "engine": {"max_context": 65536},
        "trainer": {"ranks": 2},
        "validation": {"tasks": VALIDATION_TASKS, "target": 0.69, "first": FIRST, "every": 1, "initial": False},
    }
    for section, values in changes.items():
        table[section] = {**table[section], **values}
    return Recipe.model_validate({"name": "rehearsal", **table}).model_dump(mode="json")


def benchmark_story(
    run: str = "rehearsal-1", *, recipe: dict[str, Any] | None = None, solved: Sequence[int] = SOLVED, mode: str = ""
) -> Story:
    """Steps of a minute each, and validations of ten seconds from version 18 on, until one is above the target.

    With mode "offline" the recipe says so, three more steps are trained, and the validations come afterwards, the last
    version first.
    """
    story, recipe = Story(run), recipe or benchmark_recipe()
    if mode:
        recipe = {**recipe, "validation": {**recipe["validation"], "mode": mode}}
    is_offline = mode == "offline"
    story.tell(0, f"run/{run}", told(RunCreated, recipe=recipe, task_set=blob_digest(TASKS.blob())))
    story.version_0(20, 15)
    last = FIRST + len(solved) - 1
    for step in range(last + (3 if is_offline else 0)):
        at = 60.0 * (step + 1)
        story.dispatched(at, step, prompts=PROMPTS)
        manifest = blob_digest(BATCH.canonical_bytes())
        admitted = told(StepAdmitted, step=step, rollouts=256, masked=6, reward_mean=0.25, manifest=manifest)
        story.tell(at + 30, f"run/{run}", admitted)
        metrics = {"loss": -0.01, "grad_norm": 0.08, "loss_tokens": 1e6, "masked_mismatch": 2.0}
        story.trained(at + 55, step, 25.0, metrics)
        story.completed(at + 56, step)
        if not is_offline and step + 1 >= FIRST:
            validated(story, at + 57, step + 1, solved[step + 1 - FIRST])
    if is_offline:
        for back, count in enumerate(reversed([*solved, 200, 200, 200])):
            validated(story, 5000.0 + 20 * back, last + 3 - back, count)
    story.finished(9000, RunEnd.TARGET if max(solved) >= 174 else RunEnd.MAX_STEPS, last)
    return story


def validated(story: Story, at: float, version: int, solved: int) -> None:
    """A validation of 2 s, of which so many tasks are solved by one sample, the first of them by all four."""
    story.validation_opened(at, version, "main", VALIDATION_TASKS)
    story.validation_closed(at + 2, version, "main", [4, *[1] * (solved - 1), *[0] * (VALIDATION_TASKS - solved)])


def facts_of(story: Story) -> RunFacts:
    """What is read of it."""
    streams = ("run/", "weights/", "validation/")
    events = [(envelope, event) for envelope, event in story.told if envelope.stream.startswith(streams)]
    return RunFacts(run=story.run, events=events, tasks=TASKS, first_batch=BATCH)
