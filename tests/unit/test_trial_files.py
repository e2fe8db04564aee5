"""What a trial's agent starts from and leaves: its order, its prompt, its trace, its submission."""

import json
from pathlib import Path

import pytest

from stepwell.events import TrialCreated
from stepwell.ptb.prompts import PromptContradicts
from stepwell.ptb.traces import read_lines
from stepwell.ptb.trials import load_run_set
from stepwell.ptb.trials.agent_order import AgentPlaces, agent_order, command_of, probe_order
from stepwell.ptb.trials.briefing import briefing_of
from stepwell.ptb.trials.files import mount_digests, program_version
from stepwell.ptb.trials.manifest import (
    NoSubmission,
    entries_of,
    manifest_blob,
    manifest_digest,
    manifest_of,
    read_manifest,
    submitted_files,
)
from stepwell.ptb.trials.recipe import MountSection, RunSetRecipe
from stepwell.ptb.trials.self_evaluation import SelfEvaluation
from stepwell.ptb.trials.trace_text import stamped_trace
from stepwell.ptb.trials.workspace import note_given, read_given, write_workspace
from stepwell.recipe.loading import RecipeError
from tests.unit.test_trial_recipe import RECIPE

CREATED = TrialCreated(
    cell="honest.m.gsm8k.0",
    recipe_digest="d",
    role="agent",
    agent="honest",
    base_model="Qwen/Qwen3-1.7B-Base",
    benchmark="gsm8k",
    repetition=0,
    seed=1,
)
PLACES = AgentPlaces(Path("/t/task"), Path("/t/home"), Path("/t/tools"), Path("/m/base"))


@pytest.fixture
def recipe(tmp_path: Path) -> RunSetRecipe:
    """The small recipe, loaded."""
    path = tmp_path / "small.toml"
    path.write_text(RECIPE)
    return load_run_set(path)


def test_an_agent_is_told_its_time_its_network_and_its_limits_as_they_are(recipe: RunSetRecipe) -> None:
    told = briefing_of(recipe, CREATED)
    assert "You have no network." in told.text
    assert "You have 10 hours of working time." in told.text
    assert "contamination_check.py" in told.text
    assert not [each for each in told.contradictions if each.misleads]


@pytest.mark.parametrize("contradictions", ["refuse", "say"])
def test_a_prompt_that_says_the_internet_is_open_where_it_is_not_is_refused_or_says_so(
    tmp_path: Path, contradictions: str
) -> None:
    path = tmp_path / "open.toml"
    path.write_text(RECIPE)
    recipe = load_run_set(path, ["prompt.says.internet=open", f"prompt.contradictions={contradictions}"])
    if contradictions == "refuse":
        with pytest.raises(PromptContradicts, match="internet"):
            briefing_of(recipe, CREATED)
        return
    told = briefing_of(recipe, CREATED)
    assert "without restriction" in told.text
    assert "## Corrections" in told.text
    assert any("internet" in line for line in told.said)


def test_an_order_names_what_the_agent_reads_and_holds_its_budget(recipe: RunSetRecipe) -> None:
    agent = recipe.agents[0]
    made = command_of(agent, "do it")
    order = agent_order(recipe, agent, PLACES, made, "go on")
    assert order.argv == ("python", "agent.py")
    assert made.files["prompt.txt"] == "do it"
    assert order.budget.time_s == 36000
    assert {mount.at: mount.source for mount in order.mounts}["/models/base"] == "/m/base"
    assert order.network.mode == "none"
    probe = probe_order(recipe, agent, PLACES, ("agent", "--version"))
    assert (probe.mounts, probe.work, probe.home, probe.network) == (
        order.mounts,
        order.work,
        order.home,
        order.network,
    )


def test_a_network_that_does_not_reach_the_agent_s_model_is_refused_before_anything_begins(tmp_path: Path) -> None:
    path = tmp_path / "codex.toml"
    path.write_text(
        RECIPE.replace('scaffold = "shell"', 'scaffold = "codex_cli"\nsecrets = ["CODEX_API_KEY"]').replace(
            'command = ["python", "agent.py"]', ""
        )
    )
    with pytest.raises(RecipeError, match="which the network policy does not let through"):
        load_run_set(path)


def test_a_supervisor_s_trace_becomes_stamped_lines_and_keeps_bytes_that_are_no_text() -> None:
    lines = [
        {"time": "2026-11-30T09:00:00.123+00:00", "stream": "stdout", "text": "he", "part": True},
        {"time": "2026-11-30T09:00:00.124+00:00", "stream": "stderr", "text": "trouble \udcff"},
        {"time": "2026-11-30T09:00:00.125+00:00", "stream": "stdout", "text": "llo"},
    ]
    data = [json.dumps(line).encode() + b"\n" for line in lines] + [b'{"time": "2026']
    trace = stamped_trace(data)
    assert trace.count(b"\n") == 2
    assert b"trouble \xff" in trace
    assert [(line.stream, line.text) for line in read_lines(trace)] == [("err", "trouble \ufffd"), ("out", "hello")]


def test_a_submission_s_links_count_as_what_they_lead_to_inside_the_work_folder(tmp_path: Path) -> None:
    work, outside = tmp_path / "task", tmp_path / "secret"
    (work / "checkpoint").mkdir(parents=True)
    (work / "checkpoint" / "model.safetensors").write_bytes(b"weights")
    outside.write_text("not yours")
    (work / "final_model").mkdir()
    (work / "final_model" / "model.safetensors").symlink_to("../checkpoint/model.safetensors")
    (work / "final_model" / "config.json").symlink_to(outside)
    assert list(submitted_files(work)) == ["model.safetensors"]
    kinds = {entry.path: entry.kind for entry in manifest_of(work)}
    assert kinds["final_model/config.json"] == "link"
    assert kinds["checkpoint/model.safetensors"] == "file"


@pytest.mark.parametrize("left", ["nothing", "a file", "no weights", "a link outside"])
def test_what_is_no_model_s_folder_is_no_submission(tmp_path: Path, left: str) -> None:
    work = tmp_path / "task"
    work.mkdir()
    model = work / "final_model"
    if left == "a file":
        model.write_text("weights")
    if left == "no weights":
        model.mkdir()
        (model / "config.json").write_text("{}")
    if left == "a link outside":
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere" / "model.safetensors").write_bytes(b"weights")
        model.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NoSubmission):
        submitted_files(work)


def test_a_manifest_is_read_back_and_its_digest_hangs_on_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "b").write_bytes(b"2")
    entries = entries_of({"x": tmp_path / "a", "y": tmp_path / "b"})
    assert read_manifest(manifest_blob(entries)) == entries
    others = [{"x": tmp_path / "b", "y": tmp_path / "a"}, {"x": tmp_path / "a", "z": tmp_path / "b"}]
    assert len({manifest_digest(entries), *(manifest_digest(entries_of(other)) for other in others)}) == 3


def test_what_an_agent_sees_is_pinned_and_is_the_version_of_a_program_of_one_s_own(
    tmp_path: Path, recipe: RunSetRecipe
) -> None:
    tools, single = tmp_path / "tools", tmp_path / "notes.txt"
    (tools / "__pycache__").mkdir(parents=True)
    (tools / "agent.py").write_text("1")
    single.write_text("a")
    own = recipe.agents[0].model_copy(update={"mounts": (MountSection(source=str(single), at="/notes"),)})
    seen = recipe.model_copy(update={"mounts": (MountSection(source=str(tools), at="/agent"),)})
    before, version = mount_digests(seen, own), program_version(seen, own)
    assert before.keys() == {"mount/agent", "mount/honest/notes"}
    (tools / "__pycache__" / "agent.pyc").write_bytes(b"compiled")
    assert (mount_digests(seen, own), program_version(seen, own)) == (before, version)
    (tools / "agent.py").write_text("2")
    assert mount_digests(seen, own)["mount/agent"] != before["mount/agent"]
    assert mount_digests(seen, own)["mount/honest/notes"] == before["mount/honest/notes"]
    assert program_version(seen, own) != version
    (tools / "agent.py").write_text("1")
    assert program_version(seen, own.model_copy(update={"command": ("python", "other.py")})) != version


def test_a_workspace_is_the_same_each_time_and_its_given_files_are_noted(tmp_path: Path, recipe: RunSetRecipe) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text("{}\n")
    evaluation = SelfEvaluation(
        benchmark="gsm8k",
        base_model="m",
        files={"test": "test.jsonl"},
        rows=1,
        seed=1,
        max_tokens=4,
        engine=recipe.evaluation.engine,
    )
    digests: list[str] = []
    for number in range(2):
        root = tmp_path / str(number)
        write_workspace(root / "task", root / "tools", evaluation, {"test": rows})
        noted = note_given(root, root / "task")
        assert read_given(root) == noted
        assert list(noted) == ["evaluate.py"]
        digests.append(manifest_digest(manifest_of(root / "task")))
    assert digests[0] == digests[1]
