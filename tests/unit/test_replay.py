"""Today's workflows replay histories of earlier runs: a change that would break a running run fails here."""

import json
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner
from temporalio.workflow import NondeterminismError

from workflows.registered import WORKFLOWS

HISTORIES = sorted((Path(__file__).parents[1] / "histories").glob("*.json"))


def replayer() -> Replayer:
    """With the workflows of this checkout."""
    return Replayer(
        workflows=WORKFLOWS,
        workflow_runner=UnsandboxedWorkflowRunner(),
        data_converter=pydantic_data_converter,
    )


def test_every_kind_of_workflow_has_a_history() -> None:
    kinds = {path.stem.split("-")[0] for path in HISTORIES}
    assert kinds == {"TrainingRun", "PromptGroup", "PromptGroupShard", "Validation", "RunSet", "Trial"}


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
async def test_workflow_replays_its_stored_history(path: Path) -> None:
    await replayer().replay_workflow(WorkflowHistory.from_json(path.stem, path.read_text()))


async def test_a_changed_decision_is_noticed() -> None:
    path = next(path for path in HISTORIES if path.stem.startswith("TrainingRun"))
    history = json.loads(path.read_text())
    for event in history["events"]:
        scheduled = event.get("activityTaskScheduledEventAttributes")
        if scheduled and scheduled["activityType"]["name"] == "dispatch_step":
            scheduled["activityType"]["name"] = "another_activity"
    with pytest.raises(NondeterminismError):
        await replayer().replay_workflow(WorkflowHistory.from_json("changed", history))
