"""A run on an imported set: what the ledger's store has of it, and where the secrets are."""

from collections.abc import Callable
from pathlib import Path

import pytest

from activities.stores import Stores
from db.blobs import BlobStore
from db.database import Database
from db.ledger import Ledger
from db.run_record import read_run
from stepwell.audit.verification import verify
from stepwell.events import StepDispatched
from stepwell.events.streams import run_stream
from stepwell.recipe.loading import resolve
from stepwell.tasks.manifest import TaskManifest
from stepwell.tasks.r2e.importing import ImportRequest, import_r2e
from stepwell.tasks.r2e.secrets import R2ESecrets, R2ESplit
from tests.book import failing
from tests.r2e_rows import EXPECTED, TESTS, r2e_recipe, secret_texts, write_folder
from tests.stack.database import DatabaseUrls
from tests.stack.test_audit_verify import tamper
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


async def test_an_audit_misses_the_secrets_of_a_task_that_was_dispatched(
    created: tuple[Stores, str, TaskManifest], connections: Database, database: DatabaseUrls
) -> None:
    stores, run, manifest = created
    tasks = [entry.blob for entry in manifest.train]
    await stores.append_next(run_stream(run), StepDispatched(step=0, version=0, tasks=tasks, settings={}))
    secrets = [(await stores.task(blob)).secrets for blob in tasks]
    assert None not in secrets
    whole = await read_run(connections, stores.blobs, run)
    assert whole is not None
    assert set(secrets) <= whole.named_blobs.keys()
    assert whole.blob_faults == {}
    kept = await stores.blobs.get(str(secrets[1]))
    tamper(database, ("DELETE FROM blobs WHERE digest = %s", [secrets[1]]))
    try:
        found = await read_run(connections, stores.blobs, run)
    finally:
        await stores.blobs.put(kept)  # other tests share the database
    assert found is not None
    assert failing(verify(found))["blobs"] == f"{run_stream(run)} #1: blob {secrets[1]} is not stored"
