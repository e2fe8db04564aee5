"""An engine takes no traffic for a version that it has not attested."""

from collections.abc import Callable
from pathlib import Path

import pytest

from activities.engine import EngineActivities, ProbeMismatch
from activities.folders import put_folder
from activities.stores import Stores
from db.blobs import BlobStore
from db.ledger import Ledger
from stepwell.events import RunCreated, VersionCreated
from stepwell.events.numbers import WeightDigests
from stepwell.events.streams import run_stream, weights_stream
from stepwell.policy.engine_http.service import Draining, EngineService
from stepwell.policy.engines import EngineConfig, make_engine
from stepwell.policy.micro.shipped import FOLDER, shipped
from stepwell.policy.protocol import GenerateRequest
from stepwell.recipe.loading import load_recipe
from stepwell.tasks.manifest import TaskManifest

RECIPE = Path(__file__).parents[2] / "recipes" / "micro.toml"
PROBE = (5, 6, 7, 8)


async def test_wrong_probe_leaves_the_engine_without_traffic(
    ledger: Ledger, blobs: BlobStore, fresh: Callable[[], str], tmp_path: Path
) -> None:
    run = fresh()
    recipe = load_recipe(RECIPE)
    manifest = await blobs.put(TaskManifest(train=(), main=(), confirm=(), heldout=()).blob())
    created = RunCreated(recipe=recipe.model_dump(mode="json"), recipe_digest=recipe.digest, task_set=manifest.digest)
    await ledger.append(run_stream(run), [created], expected_seq=0, actor="control:t")
    version_0 = VersionCreated(
        origin="shipped",
        digests=WeightDigests(master="m", exported=shipped().weights, optimiser="o"),
        export=await put_folder(blobs, FOLDER),
        probe_ids=list(PROBE),
        probe=[-1000.0] * (len(PROBE) - 1),
        metrics={},
        environment={},
        duration_s=0.0,
    )
    await ledger.append(weights_stream(run), [version_0], expected_seq=0, actor="trainer:t")
    engine = await make_engine(EngineConfig(max_context=64, max_batch=1), FOLDER)
    try:
        service = EngineService(engine)
        stores = Stores(ledger, blobs, actor="engine:t")
        activities = EngineActivities(stores, service, f"e-{run}", tmp_path, version_0.export)
        for _ in range(2):
            with pytest.raises(ProbeMismatch):
                await activities.serve(run, 0)
            with pytest.raises(Draining):
                await service.generate(GenerateRequest(PROBE, 1, 1.0, 1.0, 0, (), 0))
    finally:
        await engine.close()
