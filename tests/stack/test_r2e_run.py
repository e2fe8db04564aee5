"""A run on an imported set: what the ledger's store has of it, and where the secrets are."""

from collections.abc import Callable
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from activities.engine_pool import EnginePool
from activities.policy_files import PolicyFiles
from activities.rollout import RolloutActivities
from activities.stores import Stores
from db.blobs import BlobStore
from db.database import Database
from db.engines import Engines
from db.ledger import Ledger
from stepwell.contracts.rollout import RolloutRequest
from stepwell.recipe.loading import resolve
from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.tasks.manifest import TaskManifest
from stepwell.tasks.r2e.importing import ImportRequest, import_r2e
from stepwell.tasks.r2e.secrets import R2ESecrets, R2ESplit
from tests.r2e_rows import EXPECTED, TESTS, r2e_recipe, secret_texts, write_folder
from workers.runs import find_or_create


@pytest.fixture
async def created(
    ledger: Ledger, blobs: BlobStore, fresh: Callable[[], str], tmp_path: Path
) -> tuple[Stores, str, TaskManifest]:
    """A run on an imported set."""
    write_folder(tmp_path)
    splits: tuple[R2ESplit, ...] = ("train", "validation")
    for split in splits:
        import_r2e(ImportRequest((tmp_path / "train.jsonl",), tmp_path / "images", split, tmp_path / "set"))
    stores = Stores(ledger, blobs, "control:test/1")
    run = await find_or_create(stores, resolve(r2e_recipe(tmp_path / "set"), source="a test"), fresh())
    return stores, run.name, (await stores.run_facts(run.name)).manifest


async def test_tasks_and_their_secrets_are_stored_as_separate_blobs(
    created: tuple[Stores, str, TaskManifest],
) -> None:
    stores, _, manifest = created
    assert len(manifest.train) == 2
    for entry in (*manifest.train, *manifest.main):
        public = (await stores.blobs.get(entry.blob)).decode()
        assert [what for what, text in secret_texts().items() if text in public] == []
        task = await stores.task(entry.blob)
        assert task.secrets is not None
        secrets = R2ESecrets.model_validate_json(await stores.blobs.get(task.secrets))
        assert (secrets.instance, secrets.tests, secrets.expected) == (task.id, TESTS, EXPECTED)


async def test_a_worker_whose_sandboxes_take_no_image_plays_no_rollout_in_an_empty_tree(
    created: tuple[Stores, str, TaskManifest], connections: Database, tmp_path: Path
) -> None:
    stores, run, manifest = created
    engines, factory = EnginePool(Engines(connections)), BubblewrapFactory(tmp_path / "sandboxes")
    rollouts = RolloutActivities(stores, engines, factory, PolicyFiles(stores))
    request = RolloutRequest(
        run=run, scope="0", purpose="train", prompt=0, sample=0, task=manifest.train[0].blob, version=0
    )
    with pytest.raises(ApplicationError, match="sandboxes have none") as caught:
        await rollouts.run_rollout(request)
    assert (caught.value.type, caught.value.non_retryable) == ("data", True)
