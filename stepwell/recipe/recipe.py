"""A recipe: everything that decides a run."""

import json
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from stepwell.contracts.run import Band, Gates, RunPlan
from stepwell.events.canonical import digest_of_json
from stepwell.policy.engines.config import EngineConfig
from stepwell.policy.micro.config import MicroModelConfig, WarmUpConfig
from stepwell.policy.micro.shipped import shipped
from stepwell.policy.trainers.megatron.layout import Counts
from stepwell.policy.trainers.router_names import NO_ROUTER
from stepwell.recipe.cluster import ClusterSection, refuse_contradictions, refuse_other_layout
from stepwell.recipe.model_shape import ModelShape, differences
from stepwell.recipe.policies import FolderPolicy, Smollm2Policy, WarmUpSection, refuse_useless_warm_up
from stepwell.recipe.sections import (
    BANDS,
    AgentSection,
    FailureSection,
    ForgedTasks,
    GateSection,
    LimitSection,
    PackageTasks,
    R2ETasks,
    RunSection,
    SamplingSection,
    SandboxSection,
    Section,
)
from stepwell.recipe.trainer_section import TrainerSection
from stepwell.recipe.validating import ValidationSection
from stepwell.rl.config import GrpoConfig, OptimiserConfig


class MicroPolicy(Section):
    """The micro policy: built from the seed, warmed up on demonstrations."""

    kind: Literal["micro"] = "micro"
    """Which policy."""
    version_0: Literal["shipped", "warm_up"] = "shipped"
    """`shipped`: the version 0 that comes with Stepwell, made by the default warm-up; `warm_up`: one is made, from
    `run.seed`, which takes minutes."""
    warm_up: WarmUpConfig = WarmUpConfig()
    """Its shape, and how version 0 is made."""


Policy = Annotated[MicroPolicy | FolderPolicy | Smollm2Policy, Field(discriminator="kind")]
Tasks = Annotated[ForgedTasks | PackageTasks | R2ETasks, Field(discriminator="source")]


class Recipe(Section):
    """What `stepwell run` is given, resolved: every key has its value. It is a run's first event."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,40}$")
    """Names the runs: `<name>-<n>`."""
    run: RunSection
    """How long, how exact."""
    policy: Policy
    """What is trained."""
    tasks: Tasks
    """On what."""
    agent: AgentSection
    """The harness."""
    sampling: SamplingSection = SamplingSection()
    """How training rollouts are sampled."""
    rl: GrpoConfig = GrpoConfig()
    """The algorithm."""
    optimiser: OptimiserConfig
    """The optimiser."""
    trainer: TrainerSection = TrainerSection()
    """Where and how a step is computed."""
    engine: EngineConfig = EngineConfig()
    """What generates."""
    engines: int = Field(default=1, ge=1)
    """Engine workers that `stepwell run` starts."""
    sandbox: SandboxSection = SandboxSection()
    """Bounds of sandboxes."""
    sandbox_workers: int = Field(default=1, ge=1)
    """Sandbox workers that `stepwell run` starts."""
    validation: ValidationSection
    """When versions are validated, and on what."""
    failures: FailureSection = FailureSection()
    """Budgets and deadlines."""
    cluster: ClusterSection | None = None
    """Where it lies on a cluster; None: on the machines of its workers, wherever they are."""
    limits: LimitSection = LimitSection()
    """What the run may use."""
    gates: GateSection = GateSection()
    """Where an operator is asked."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        """Refuses sections that contradict each other."""
        if self.agent.max_context_tokens > self.engine.max_context:
            raise ValueError(
                f"agent.max_context_tokens is {self.agent.max_context_tokens}, but engine.max_context is "
                f"{self.engine.max_context}: an engine must hold the agent's context"
            )
        if isinstance(self.policy, MicroPolicy) and self.agent.max_context_tokens > self.policy.warm_up.model.context:
            raise ValueError(
                f"agent.max_context_tokens is {self.agent.max_context_tokens}, but policy.warm_up.model.context is "
                f"{self.policy.warm_up.model.context}: the model must hold the agent's context"
            )
        if isinstance(self.policy, MicroPolicy) != (self.agent.tools == "compact"):
            raise ValueError(
                f'agent.tools = "{self.agent.tools}" does not fit policy.kind = "{self.policy.kind}": the micro policy '
                'speaks "compact", every other policy "codeact"'
            )
        if isinstance(self.policy, MicroPolicy) and self.policy.version_0 == "shipped":
            self._fits_shipped(self.policy)
        if isinstance(self.policy, MicroPolicy):
            self._fits_micro(self.policy.warm_up.model)
        if isinstance(self.policy, FolderPolicy) and self.policy.shape is not None:
            self._fits_shape(self.policy.shape)
        if self.cluster is not None:
            self._fits_cluster(self.cluster)
        if self.warm_up is not None:
            refuse_useless_warm_up(self.warm_up, self.agent, self.tasks, self.failures.reserve)
        if self.failures.min_prompts > self.run.prompts_per_step:
            raise ValueError(
                f"failures.min_prompts is {self.failures.min_prompts}, but run.prompts_per_step is "
                f"{self.run.prompts_per_step}: every step would wait for an operator"
            )
        self._fits_schedule()
        if isinstance(self.tasks, R2ETasks) and self.validation.heldout_tasks:
            raise ValueError(
                'validation.heldout_tasks would do nothing with tasks.source = "r2e": it has no families that training '
                "never sees; set it to 0"
            )
        if isinstance(self.tasks, PackageTasks) and bool(self.validation.heldout_tasks) != bool(self.tasks.held_out):
            raise ValueError(
                f"validation.heldout_tasks is {self.validation.heldout_tasks} and tasks.held_out is "
                f"{list(self.tasks.held_out)}: one would do nothing without the other"
            )
        return self

    def _fits_micro(self, model: MicroModelConfig) -> None:
        if self.trainer.freeze_router:
            raise ValueError("trainer.freeze_router would do nothing: the micro policy has no experts; leave it out")
        counts = Counts(model.heads, model.kv_heads, model.feed_forward, model.vocabulary)
        if self.trainer.layout is not None and (refusal := self.trainer.layout.refusal(counts)):
            raise ValueError(refusal)

    def _fits_shape(self, shape: ModelShape) -> None:
        if self.trainer.freeze_router and shape.experts is None:
            raise ValueError(NO_ROUTER)

    def _fits_schedule(self) -> None:
        first = self.plan().validation.first
        if self.validation.schedule == "mlperf" and first > self.run.max_steps:
            raise ValueError(
                f'validation.schedule = "mlperf" validates version {first} first, but run.max_steps is '
                f"{self.run.max_steps}: train longer, or with more samples a step"
            )

    def _fits_shipped(self, policy: MicroPolicy) -> None:
        made = shipped()
        context = {"context": policy.warm_up.model.context}  # rotary positions have no weights: any context will do
        if policy.warm_up != made.warm_up.model_copy(update={"model": made.warm_up.model.model_copy(update=context)}):
            raise ValueError(
                "policy.warm_up differs from the settings that the shipped version 0 was made with, so it would do "
                'nothing: set policy.version_0 = "warm_up" to make your own, or leave policy.warm_up out'
            )
        if not isinstance(self.tasks, ForgedTasks) or self.tasks.seed != made.tasks_seed:
            raise ValueError(
                f"the shipped version 0 was shown the training tasks of tasks.seed = {made.tasks_seed}; with another "
                'seed it may have seen what validates it: set policy.version_0 = "warm_up"'
            )

    def _fits_cluster(self, cluster: ClusterSection) -> None:
        if not isinstance(self.policy, FolderPolicy) or self.policy.shape is None:
            raise ValueError(
                'cluster would plan for no model: it needs policy.kind = "folder" and [policy.shape], the published '
                "configuration"
            )
        if self.engine.kind != "vllm" or self.engine.device != "cuda":
            raise ValueError(
                f'engine.kind = "{self.engine.kind}" on "{self.engine.device}" leaves the GPUs of cluster.generation '
                'idle: wanted "vllm" on "cuda"'
            )
        if self.trainer.ranks != 1:
            raise ValueError("trainer.ranks would do nothing: with [cluster], each GPU of the policy pool is a rank")
        refuse_contradictions(
            cluster,
            self.policy.shape,
            batch=self.batch,
            engines=self.engines,
            engine_gpus=self.engine.tensor_parallel or 1,
        )
        if self.trainer.layout is not None:
            refuse_other_layout(cluster, self.trainer.layout)

    @property
    def batch(self) -> int:
        """Rollouts of a training step."""
        return self.run.prompts_per_step * self.run.samples_per_prompt

    @property
    def warm_up(self) -> WarmUpSection | None:
        """The warm-up on demonstrations made from gold patches, if there is to be one."""
        return None if isinstance(self.policy, MicroPolicy) else self.policy.warm_up

    @property
    def digest(self) -> str:
        """Digest of the resolved recipe."""
        return digest_of_json(self.model_dump(mode="json"))

    def plan(self) -> RunPlan:
        """The part that workflows see."""
        return RunPlan(
            max_steps=self.run.max_steps,
            max_staleness=self.run.max_staleness,
            prompts=self.run.prompts_per_step,
            samples=self.run.samples_per_prompt,
            validation_samples=self.validation.samples,
            validation=self.validation.plan(self.batch),
            steps_per_history=self.run.steps_per_history,
            rollout_timeout_s=self.failures.rollout_timeout_s,
            rollout_attempts=self.failures.rollout_attempts,
            step_timeout_s=self.failures.step_timeout_s,
            warm_up_timeout_s=self.failures.warm_up_timeout_s,
            group_timeout_s=self.failures.group_timeout_s,
            groups_in_flight=self.run.groups_in_flight,
            min_prompts=self.failures.min_prompts,
            limits=dict(self.limits),
            gates=self._gates(),
        )

    def _gates(self) -> Gates:
        bands = {name: getattr(self.gates, name) for name in BANDS}
        return Gates(
            publish=self.gates.publish,
            validation=self.gates.validation,
            bands=tuple(Band(metric=name, low=band[0], high=band[1]) for name, band in bands.items() if band),
        )


def folder_of(policy: FolderPolicy) -> Path:
    """Folder of a folder policy, checked.

    Raises:
        FileNotFoundError: what is missing in it, or that it holds another model than `policy.shape`.
    """
    folder = Path(policy.path).expanduser()
    for name in ("config.json", "tokenizer.json"):
        if not (folder / name).is_file():
            raise FileNotFoundError(f"policy.path is {policy.path!r}, which has no {name}: give a Hugging Face folder")
    if not any(folder.glob("*.safetensors")):
        raise FileNotFoundError(f"policy.path is {policy.path!r}, which has no *.safetensors: weights are missing")
    if policy.shape is not None:
        differing = differences(policy.shape, json.loads((folder / "config.json").read_text(encoding="utf-8")))
        if differing:
            raise FileNotFoundError(
                f"policy.path is {policy.path!r}, which has another model than policy.shape: {'; '.join(differing)}"
            )
    return folder
