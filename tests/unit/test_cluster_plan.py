"""Recipes for a cluster: what is refused, what the plan says, and what a run of them says."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cli.dry_run import dry_run
from stepwell.mlperf.cluster_plan import cluster_plan
from stepwell.mlperf.reference_times import TIMES
from stepwell.recipe.loading import RecipeError, load_recipe
from stepwell.recipe.unexecutable import unexecutable
from tests.unit.test_recipe import MICRO, RECIPES
from workers.preflight import refuse_unexecutable

BATCHES = (256, 512, 1024)
DENSE = (
    'policy.shape={source="a test", layers=4, hidden=48, vocabulary=100, heads=4, kv_heads=2, head_dim=16, '
    "feed_forward=56}",
    "engine.tensor_parallel=4",
    "engines=1",
    "cluster.policy={nodes=1, tensor_parallel=2}",
    "cluster.generation={nodes=1}",
)
"""A model without experts, on two nodes of four GPUs."""
TORCH = 'trainer={backend="torch", compute_dtype="bfloat16"}'
MEGATRON = 'trainer={backend="megatron", tensor_parallel=2, data_parallel=2}'
"""Fits the model without experts."""


def path_of(batch: int) -> Path:
    """A shipped recipe."""
    return RECIPES / f"qwen35-397b-gbs{batch}.toml"


@pytest.mark.parametrize("batch", BATCHES)
def test_a_shipped_recipe_is_the_benchmarks_as_far_as_it_is_checked(batch: int) -> None:
    plan = cluster_plan(load_recipe(path_of(batch)))
    assert plan.differs == ()
    assert plan.too_full == ()
    assert plan.rollouts.step == batch
    assert plan.rollouts.validation == 1004


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("optimiser.learning_rate=1e-5", "optimiser.learning_rate is 1e-05"),
        ("run.samples_per_prompt=32", "run.samples_per_prompt is 32, the benchmark has 16"),
        ("validation.tasks=256", "validation.tasks is 256, the benchmark has 251"),
        ("validation.schedule=interval", "validation.first is 1, the benchmark has 18"),
        ("validation.target=0.7", "validation.target is 0.7"),
        ("rl.importance=icepop", "rl.importance is icepop, the benchmark has seq_mask_tis"),
        ("rl.mismatch_max=3", "rl.mismatch_max is 3.0, the benchmark has 2.0"),
        ("agent.command_timeout_s=300", "agent.command_timeout_s is 300.0, the benchmark has 60.0"),
        ("trainer.freeze_router=false", "trainer.freeze_router is False, the benchmark has True"),
    ],
)
def test_the_plan_says_where_a_recipe_is_not_the_benchmarks(setting: str, said: str) -> None:
    assert any(said in line for line in cluster_plan(load_recipe(path_of(256), [setting])).differs)


@pytest.mark.parametrize("batch", BATCHES)
def test_the_expected_time_is_near_what_the_reference_took(batch: int) -> None:
    """The sum of phases leaves out what the logs do not name; a tenth of the whole at most."""
    plan = cluster_plan(load_recipe(path_of(batch)))
    assert plan.times is not None
    assert plan.expected_run_s == pytest.approx(plan.times.run.mean, rel=0.1)


@pytest.mark.parametrize("batch", BATCHES)
def test_reference_phases_are_in_order_and_within_their_step(batch: int) -> None:
    times = TIMES[batch]
    for span in (times.opening, times.step, times.generation, times.training, times.sync, times.validation, times.run):
        assert 0 < span.low <= span.mean <= span.high
    assert times.other > 0


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["cluster.policy.nodes=15"], "the policy pool has 60 GPUs, and a replica of the model needs 8"),
        (["cluster.policy.expert_parallel=24"], "does not divide the 32 GPUs of a pipeline stage"),
        (["cluster.policy.tensor_parallel=3", "cluster.policy.nodes=3"], "which does not divide the"),
        (["cluster.policy.pipeline_parallel=8", "cluster.policy.expert_parallel=8"], "does not divide the 60 layers"),
        (["run.samples_per_prompt=2", "run.prompts_per_step=3"], "6 rollouts, which 8 replicas"),
        (["engine.tensor_parallel=3"], "engine.tensor_parallel is 3, which does not divide the 32 heads"),
        (["cluster.generation.nodes=1"], "too few for one engine of 8"),
        (["cluster.generation.nodes=47"], "engines is 24: wanted 23.5"),
        (["engines=23"], "engines is 23: wanted 24"),
        (["cluster.generation.expert_parallel=4"], "over all of them or over none"),
        (["trainer.ranks=2"], "ranks is 2, which would do nothing"),
        ([TORCH, "trainer.ranks=2"], "trainer.ranks would do nothing: with [cluster], each GPU"),
        (
            ["trainer.tensor_parallel=2"],
            "trainer.tensor_parallel is 2, allowed: 4, since cluster.policy.tensor_parallel says so; set "
            "trainer.tensor_parallel = 4, or change cluster.policy",
        ),
        (
            ["trainer.data_parallel=4"],
            "trainer.data_parallel is 4, allowed: 8, since the 64 GPUs of cluster.policy hold the model that often, 8 "
            "each; set trainer.data_parallel = 8",
        ),
        (["cluster.policy.expert_parallel=2"], "trainer.expert_parallel is 1, allowed: 2"),
        (
            [*DENSE, MEGATRON, "trainer.freeze_router=true"],
            "trainer.freeze_router would do nothing: the model has no experts",
        ),
        (["engine.device=cpu"], "leaves the GPUs of cluster.generation idle"),
        (["policy.kind=smollm2"], "policy"),
    ],
)
def test_a_cluster_that_contradicts_the_recipe_is_refused(settings: list[str], said: str) -> None:
    with pytest.raises(RecipeError) as refused:
        load_recipe(path_of(256), settings)
    assert said in str(refused.value)


def test_a_cluster_without_a_published_model_is_refused() -> None:
    cluster = ["cluster.gpus_per_node=1", "cluster.gpu_memory_gb=80", "cluster.policy.nodes=1"]
    with pytest.raises(RecipeError, match="cluster would plan for no model"):
        load_recipe(MICRO, [*cluster, "cluster.generation.nodes=1"])


def test_a_gpu_that_is_too_small_is_told() -> None:
    plan = cluster_plan(load_recipe(path_of(256), ["cluster.gpu_memory_gb=150"]))
    assert plan.too_full == ("generation",)


def test_a_batch_without_a_reference_has_no_expected_time() -> None:
    recipe = load_recipe(path_of(256), ["run.prompts_per_step=48"])
    assert cluster_plan(recipe).times is None
    assert "the reference published no run at this batch size" in dry_run(recipe, as_json=False)


def test_a_run_of_what_cannot_be_done_is_refused_with_all_of_it() -> None:
    recipe = load_recipe(path_of(512))
    with pytest.raises(RecipeError) as refused:
        refuse_unexecutable(recipe)
    cannot = unexecutable(recipe)
    assert any("pipeline_parallel = 2" in line for line in cannot)
    assert all(line in str(refused.value) for line in cannot)
    assert unexecutable(load_recipe(MICRO)) == []


def test_what_megatron_cannot_do_of_the_benchmarks_model_is_said_key_by_key() -> None:
    cannot = unexecutable(load_recipe(path_of(256)))
    assert [line.partition(":")[0] for line in cannot] == [
        "cluster.policy.pipeline_parallel = 2",
        "cluster.policy.nodes = 16",
        "cluster.policy.expert_parallel = 32",
        "trainer.tensor_parallel is 4, which does not divide the model's 2 key-value heads; allowed",
        "policy.shape.full_attention_every = 4",
        "policy.shape.output_gate = true",
        "policy.shape.shared_feed_forward = 1024",
        "engine.tensor_parallel = 8",
        "cluster.generation.expert_parallel = 8",
    ]


def test_what_torch_cannot_do_of_a_cluster_is_said_key_by_key() -> None:
    cannot = unexecutable(load_recipe(path_of(256), [TORCH]))
    assert cannot[2:5] == [
        'cluster.policy: the trainer computes on processors, not on its 64 GPUs, with trainer.backend = "torch"',
        'cluster.policy.tensor_parallel = 4: with trainer.backend = "torch" each rank has the whole model',
        'cluster.policy.expert_parallel = 32: with trainer.backend = "torch" each rank has the whole model',
    ]


def test_a_cluster_that_megatron_can_train_on_is_not_refused() -> None:
    assert unexecutable(load_recipe(path_of(256), [*DENSE, MEGATRON])) == []
    assert unexecutable(load_recipe(path_of(256), [*DENSE, TORCH])) != []


def test_the_dry_run_is_toml_that_resolves_to_the_same_recipe() -> None:
    recipe = load_recipe(path_of(1024))
    printed = dry_run(recipe, as_json=False)
    assert type(recipe).model_validate(tomllib.loads(printed)) == recipe
    for line in cluster_plan(recipe).unexecutable:
        assert line in printed
    assert "shared_feed_forward" in printed.partition("Without confirmation")[2]


def test_the_dry_run_in_json_has_recipe_and_plan() -> None:
    told = json.loads(dry_run(load_recipe(path_of(256)), as_json=True))
    assert told["recipe"]["cluster"]["policy"]["nodes"] == 16
    parts = told["plan"]["trainer"]
    assert parts.pop("total") == pytest.approx(sum(parts.values()))
    assert json.loads(dry_run(load_recipe(MICRO), as_json=True))["plan"] is None


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [(["--dry-run"], 0, "The plan"), ([], 2, "pipeline_parallel"), (["--json"], 2, "--dry")],
)
def test_the_command_plans_and_refuses_to_run(options: list[str], code: int, said: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cli.main", "run", str(path_of(256)), *options],
        cwd=RECIPES.parent,
        env={"STEPWELL_HOME": str(tmp_path), "PATH": "", "PYTHONPATH": str(RECIPES.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert said in done.stdout + done.stderr
    assert not any(tmp_path.iterdir())
