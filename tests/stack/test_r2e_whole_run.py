"""A whole run on R2E-Gym tasks: every service and every sandbox is real, and only the policy is small."""

import json
from pathlib import Path

import pytest
from temporalio.api.enums.v1 import EventType

from db.blobs import BlobStore
from db.ledger import Ledger
from stepwell.agent.codeact import CodeActTools
from stepwell.agent.turn import TurnPayload
from stepwell.events import RolloutGraded, RunFinished, TurnRecorded, ValidationRecorded, VerdictReached
from stepwell.events.streams import run_stream, verdict_stream
from stepwell.tasks.r2e.image_run import WORK
from stepwell.tasks.r2e.judging import r2e_grader_digest
from tests.r2e_image import make_r2e_set, secret_needles
from tests.stack.tiny_run import TinyRun
from tests.talking_policy import write_talking_policy
from workers.runtime import connect
from workers.services.addresses import Addresses
from workflows.ids import group_id


def call(tool: str, **arguments: str) -> str:
    """What a policy says to call a tool."""
    return f"<tool_call>\n{json.dumps({'name': tool, 'arguments': arguments})}\n</tool_call>"


SAYS = (
    call("execute_bash", command="sed -i 's/a + b/a * b/' shapes.py"),
    call("execute_bash", command="cat r2e_tests/* /root/r2e_tests/* run_tests.sh /root/dataset/*; git log -p --all"),
    call("finish", message="done"),
)
PATIENCE_S = 900.0
RECIPE = """
name = "r2e"

[run]
seed = 3
max_steps = 1
prompts_per_step = 2
samples_per_prompt = 3
steps_per_history = 1

[policy]
kind = "folder"
path = "{policy}"

[tasks]
source = "r2e"
path = "{tasks}"

[agent]
tools = "codeact"
max_turns = 2
max_context_tokens = 2048
max_turn_tokens = 1

[rl]
normalise = "group_std"
force_on_policy_ratio = false

[optimiser]
learning_rate = 1e-3

[engine]
max_context = 2048
max_batch = 4

[sandbox]
concurrency = 3

[validation]
tasks = 1
samples = 2
every = 1
first = 1
initial = false
"""


@pytest.mark.long
@pytest.mark.timeout(2 * PATIENCE_S)
async def test_a_run_on_r2e_tasks_ends_and_its_audit_holds(
    services: Addresses, services_home: Path, ledger: Ledger, blobs: BlobStore, tmp_path: Path, r2e_sif: Path
) -> None:
    tools = CodeActTools(work=WORK)
    policy = write_talking_policy(tmp_path / "policy", SAYS, [tools.system_prompt()], context=2048)
    recipe = RECIPE.format(policy=policy, tasks=make_r2e_set(r2e_sif, tmp_path))
    run = TinyRun("whole-r2e", services_home, ledger, tmp_path, recipe=recipe, patience_s=PATIENCE_S)
    try:
        run.start()
        assert await run.finish() == 0, run.output
    finally:
        run.kill()
    events = [recorded.event for recorded in await run.events()]
    assert [event.end for event in events if isinstance(event, RunFinished)] == ["max_steps"]
    assert [event.version for event in events if isinstance(event, ValidationRecorded)] == [1]

    verified = run.verify()
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert run.leftovers() == []

    graded = [event for event in events if isinstance(event, RolloutGraded)]
    assert len(graded) == 2 * 3 + 2
    assert {event.score for event in graded} == {0.0, 1.0}, "some said what solves it, and some did not"
    verdicts = [
        recorded.event
        for key in {event.verdict_key for event in graded}
        for recorded in await ledger.read(verdict_stream(key))
    ]
    assert {event.grader for event in verdicts if isinstance(event, VerdictReached)} == {r2e_grader_digest()}
    assert (await ledger.read(run_stream(run.name)))[-1].event.type == "RunFinished"

    turns = [event for event in events if isinstance(event, TurnRecorded)]
    payloads = [TurnPayload.model_validate_json(await blobs.get(turn.payload)) for turn in turns]
    assert {payload.action.tool for payload in payloads} == {"execute_bash", "finish"}
    for payload in payloads:
        assert [needle for needle in secret_needles() if needle in payload.observation.encode()] == []
    assert await grading_deadlines(services, run.name) == {1080.0}


async def grading_deadlines(services: Addresses, run: str) -> set[float]:
    """Seconds that the gradings of the first prompt were given for an attempt."""
    client = await connect(services, identity="a test")
    history = await client.get_workflow_handle(group_id(run, "0", 0)).fetch_history()
    scheduled = [
        event.activity_task_scheduled_event_attributes
        for event in history.events
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    ]
    return {
        each.start_to_close_timeout.ToTimedelta().total_seconds()
        for each in scheduled
        if each.activity_type.name == "grade_rollout"
    }
