"""A recipe: everything that decides a run."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from stepwell.contracts.run import Band, Gates, RunPlan, ValidationSchedule
from stepwell.events.canonical import digest_of_json
from stepwell.policy.engines.config import EngineConfig
from stepwell.policy.micro.config import MicroModelConfig, WarmUpConfig
from stepwell.policy.micro.shipped import shipped
from stepwell.policy.trainers.megatron.layout import Counts
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
    ValidationSection,
)
from stepwell.recipe.trainer_section import TrainerSection
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
        if self.warm_up is not None:
            refuse_useless_warm_up(self.warm_up, self.agent, self.tasks, self.failures.reserve)
        if self.failures.min_prompts > self.run.prompts_per_step:
            raise ValueError(
                f"failures.min_prompts is {self.failures.min_prompts}, but run.prompts_per_step is "
                f"{self.run.prompts_per_step}: every step would wait for an operator"
            )
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

    def _fits_shipped(self, policy: MicroPolicy) -> None:
        made = shipped()
        if policy.warm_up != made.warm_up:
            raise ValueError(
                "policy.warm_up differs from the settings that the shipped version 0 was made with, so it would do "
                'nothing: set policy.version_0 = "warm_up" to make your own, or leave policy.warm_up out'
            )
        if not isinstance(self.tasks, ForgedTasks) or self.tasks.seed != made.tasks_seed:
            raise ValueError(
                f"the shipped version 0 was shown the training tasks of tasks.seed = {made.tasks_seed}; with another "
                'seed it may have seen what validates it: set policy.version_0 = "warm_up"'
            )

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
        validation = self.validation
        return RunPlan(
            max_steps=self.run.max_steps,
            max_staleness=self.run.max_staleness,
            prompts=self.run.prompts_per_step,
            samples=self.run.samples_per_prompt,
            validation_samples=validation.samples,
            validation=ValidationSchedule(
                every=validation.every,
                first=validation.first,
                initial=validation.initial,
                target=validation.target,
                confirm=validation.confirm_tasks > 0,
                report=("heldout",) if validation.heldout_tasks else (),
            ),
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
        FileNotFoundError: what is missing in it.
    """
    folder = Path(policy.path).expanduser()
    for name in ("config.json", "tokenizer.json"):
        if not (folder / name).is_file():
            raise FileNotFoundError(f"policy.path is {policy.path!r}, which has no {name}: give a Hugging Face folder")
    if not any(folder.glob("*.safetensors")):
        raise FileNotFoundError(f"policy.path is {policy.path!r}, which has no *.safetensors: weights are missing")
    return folder
