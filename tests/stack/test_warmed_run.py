"""A whole run with a warm-up: tasks of a real package, demonstrations, reinforcement, validations before and after."""

from pathlib import Path

import pytest
import tomli_w

from db.blobs import BlobStore
from db.ledger import Ledger
from stepwell.events import RunCreated, RunFinished, StepTrained, ValidationRecorded, VersionCreated
from stepwell.events.streams import run_stream
from stepwell.tasks.manifest import TaskManifest
from stepwell.tasks.task import Task
from tests.stack.tiny_run import TinyRun
from tests.warmed_recipe import make_policy, warmed_recipe


@pytest.mark.long
@pytest.mark.timeout(1800)
async def test_a_policy_from_a_folder_is_warmed_up_trained_and_validated_before_and_after(
    services: object, services_home: Path, ledger: Ledger, blobs: BlobStore, tmp_path: Path
) -> None:
    recipe = tomli_w.dumps(warmed_recipe(make_policy(tmp_path / "policy"), validation={"every": 1}))
    run = TinyRun("warmed", services_home, ledger, tmp_path, recipe=recipe)
    try:
        run.start()
        assert await run.finish() == 0, run.output
    finally:
        run.kill()
    events = [recorded.event for recorded in await run.events()]
    validations = [event for event in events if isinstance(event, ValidationRecorded)]
    assert [validation.version for validation in validations] == [0, 1]
    assert sum(isinstance(event, StepTrained) for event in events) == 1
    assert sum(isinstance(event, RunFinished) for event in events) == 1
    (made,) = (event for event in events if isinstance(event, VersionCreated))
    assert "warm-up of" in made.origin
    assert made.metrics["rows"] + made.metrics["left_out"] == 2
    created = (await ledger.read(run_stream("warmed")))[0].event
    assert isinstance(created, RunCreated)
    manifest = TaskManifest.model_validate_json(await blobs.get(created.task_set))
    demonstrated = [Task.model_validate_json(await blobs.get(entry.blob)) for entry in manifest.demonstrated]
    assert [task.split for task in demonstrated] == ["train", "train"]
    assert not {entry.id for entry in manifest.demonstrated} & {entry.id for entry in (*manifest.train, *manifest.main)}
    checked = run.verify()
    assert checked.returncode == 0, checked.stdout + checked.stderr
