"""A short slice of the rehearsal: its structure and its whole context, with few and small groups."""

from pathlib import Path

from db.ledger import Ledger
from stepwell.events import StepTrained, ValidationOpened, ValidationRecorded
from stepwell.events.streams import run_stream, validation_stream, weights_stream
from stepwell.mlperf.reference_settings import first_evaluated_version
from stepwell.recipe.loading import load_recipe
from tests.stack.tiny_run import TinyRun
from workers.services.addresses import Addresses

RECIPE = Path(__file__).parents[2] / "recipes" / "mlperf-rehearsal.toml"
SLICE = (
    "run.max_steps=1",
    "run.prompts_per_step=2",
    "run.samples_per_prompt=2",
    "validation.tasks=2",
    "validation.first=1",
    "engine.max_batch=8",
    "sandbox.concurrency=8",
)


def test_the_rehearsal_has_the_benchmarks_structure() -> None:
    recipe = load_recipe(RECIPE)
    assert recipe.batch == 256
    assert recipe.plan().validation.first == first_evaluated_version(256) == 18
    assert recipe.agent.max_context_tokens == recipe.engine.max_context == 65_536
    assert recipe.validation.tasks * recipe.validation.samples == 1004


async def test_a_slice_of_the_rehearsal_trains_and_validates(
    services: Addresses, services_home: Path, ledger: Ledger, tmp_path: Path
) -> None:
    run = TinyRun("rehearsed", services_home, ledger, tmp_path, SLICE, RECIPE.read_text())
    try:
        run.start()
        assert await run.finish() == 0, run.output
    finally:
        run.kill()
    trained = [each.event for each in await ledger.read(weights_stream("rehearsed"))]
    assert [each.version for each in trained if isinstance(each, StepTrained)] == [1]
    recorded = [each.event for each in await ledger.read(run_stream("rehearsed"))]
    assert [each.version for each in recorded if isinstance(each, ValidationRecorded)] == [1]
    opened = (await ledger.read(validation_stream("rehearsed", 1, "main")))[0].event
    assert isinstance(opened, ValidationOpened)
    assert opened.samples == 4
    assert run.leftovers() == []
