"""A run on an imported set: what the ledger's store has of it, and where the secrets are."""

from collections.abc import Callable
from pathlib import Path

from activities.stores import Stores
from db.blobs import BlobStore
from db.ledger import Ledger
from stepwell.recipe.loading import resolve
from stepwell.tasks.r2e.importing import ImportRequest, import_r2e
from stepwell.tasks.r2e.secrets import R2ESecrets
from tests.r2e_rows import EXPECTED, TESTS, r2e_recipe, secret_texts, write_folder
from workers.runs import find_or_create


async def test_tasks_and_their_secrets_are_stored_as_separate_blobs(
    ledger: Ledger, blobs: BlobStore, fresh: Callable[[], str], tmp_path: Path
) -> None:
    write_folder(tmp_path)
    for split in ("train", "validation"):
        import_r2e(ImportRequest((tmp_path / "train.jsonl",), tmp_path / "images", split, tmp_path / "set"))
    stores = Stores(ledger, blobs, "control:test/1")
    run = await find_or_create(stores, resolve(r2e_recipe(tmp_path / "set"), source="a test"), fresh())
    manifest = (await stores.run_facts(run.name)).manifest
    assert len(manifest.train) == 2
    for entry in (*manifest.train, *manifest.main):
        public = (await blobs.get(entry.blob)).decode()
        assert [what for what, text in secret_texts().items() if text in public] == []
        task = await stores.task(entry.blob)
        assert task.secrets is not None
        secrets = R2ESecrets.model_validate_json(await blobs.get(task.secrets))
        assert (secrets.instance, secrets.tests, secrets.expected) == (task.id, TESTS, EXPECTED)
