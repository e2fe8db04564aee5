"""The sections of a recipe, one model each."""

from typing import Any, Literal, Self, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from stepwell.agent.codeact_tools import FunctionName
from stepwell.nearest_names import did_you_mean
from stepwell.tasks.packages.mutation_kinds import KINDS
from stepwell.tasks.packages.package_set import SetPlan


class Section(BaseModel):
    """Frozen, and closed to unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class RunSection(Section):
    """How long, how exact."""

    seed: int = Field(default=0, ge=0)
    """Every random number of the run follows from it."""
    max_steps: int = Field(ge=1)
    """Training steps at most."""
    prompts_per_step: int = Field(ge=1)
    """Prompts a training step."""
    samples_per_prompt: int = Field(ge=2)
    """Rollouts a prompt: a group's baseline needs two."""
    max_staleness: int = Field(default=0, ge=0, le=1)
    """Versions between the policy that generates a step and the one that it trains. 1 lets generation and training
    overlap."""
    checkpoint_every: int = Field(default=10, ge=1)
    """Versions between checkpoints; those between are rebuilt from the recorded batches."""
    steps_per_history: int = Field(default=20, ge=1)
    """Steps after which the workflow continues as new."""
    groups_in_flight: int = Field(default=0, ge=0)
    """Prompt groups of a step that are open at once; 0: all of them."""
    mismatch_bound: float = Field(default=1e-3, gt=0)
    """A step fails when the mean |log-probability by the trainer - by the engine| is above it, in nats: a broken cache
    or a stale version shows there. 1e-3 for float32; 0.1 for bfloat16."""


class AgentSection(Section):
    """The harness. The keys from `chat` on are those of `codeact`, and refused with `compact`."""

    tools: Literal["compact", "codeact"]
    """Tool set: `compact` for the micro policy, `codeact` for the others."""
    max_turns: int = Field(default=30, ge=1)
    """Turns an episode."""
    max_context_tokens: int = Field(default=65_536, ge=16)
    """Tokens of prompt, observations and answers together."""
    max_turn_tokens: int = Field(ge=1)
    """Tokens generated in a turn."""
    wall_clock_s: float = Field(default=600.0, gt=0)
    """Sum of an episode's turns, in seconds."""
    chat: Literal["chatml", "qwen3", "qwen3_xml"] | None = None
    """Chat format and form of tool calls; `chatml` unless given. `qwen3`: calls in JSON; `qwen3_xml`, for Qwen3.5: in
    XML; both with thinking off."""
    command_timeout_s: float | None = Field(default=None, gt=0)
    """Longest that one command may run; 60 unless given."""
    observation_chars: int | None = Field(default=None, ge=200)
    """Characters of an observation, head and tail; 8000 unless given."""
    stop_when_stuck: bool | None = None
    """End an episode that goes round in circles; true unless given, and refused with `harness`, which sees to it."""
    harness: tuple[str, ...] | None = None
    """Program, by its full path, and arguments of a harness that plays the rollouts through the gateway (see
    docs/harnesses.md); by default they are played by our own."""
    functions: tuple[FunctionName, ...] | None = Field(default=None, min_length=1)
    """Functions that are offered; all four unless given."""
    prompt: Literal["schemas", "examples"] | None = None
    """How the policy is told of them. `schemas`, unless given: by JSON schemas, as models that know tools expect;
    `examples`: by a sentence and a call of each, in a third of the tokens, for one that is warmed up on them."""

    @model_validator(mode="before")
    @classmethod
    def _fill_dependent_defaults(cls, raw: Any) -> Any:
        if not isinstance(raw, dict) or raw.get("tools") != "codeact":
            return raw
        given = {key: value for key, value in cast(dict[str, Any], raw).items() if value is not None}
        return CODEACT_DEFAULTS | ({"stop_when_stuck": False} if given.get("harness") else {}) | given

    @model_validator(mode="after")
    def _refuse_useless(self) -> Self:
        if self.harness is not None and self.stop_when_stuck:
            raise ValueError("stop_when_stuck would do nothing: a harness of its own ends as it sees fit")
        for key in ("functions", "prompt"):
            if self.harness is not None and getattr(self, key) != CODEACT_DEFAULTS[key]:
                raise ValueError(f"{key} would do nothing: a harness of its own tells the policy what it offers")
        for key in (*CODEACT_DEFAULTS, "harness"):
            if self.tools == "compact" and getattr(self, key) is not None:
                raise ValueError(f'{key} would do nothing: it is for tools = "codeact"')
        return self


CODEACT_DEFAULTS: dict[str, Any] = {
    "chat": "chatml",
    "command_timeout_s": 60.0,
    "observation_chars": 8000,
    "stop_when_stuck": True,
    "functions": get_args(FunctionName),
    "prompt": "schemas",
}
"""Of the keys of `agent` that only `codeact` has."""


class SamplingSection(Section):
    """How training rollouts are sampled."""

    temperature: float = Field(default=1.0, gt=0)
    """Above 0."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Share of the probability that is sampled from; below 1 training is no longer on the sampled distribution."""


class SandboxSection(Section):
    """Bounds of one sandbox."""

    memory_mib: int = Field(default=1024, ge=64)
    """Memory of a process inside."""
    processes: int = Field(default=64, ge=4)
    """Processes and threads at once."""
    wall_clock_s: float = Field(default=900.0, gt=0)
    """Life of a sandbox, in seconds."""
    concurrency: int = Field(default=64, ge=1)
    """Rollouts at once in one sandbox worker."""


class FailureSection(Section):
    """Budgets and deadlines."""

    rollout_timeout_s: float = Field(default=600.0, gt=0)
    """One attempt at a rollout."""
    rollout_attempts: int = Field(default=5, ge=1)
    """Attempts in a row without a new turn before a rollout counts as failed by infrastructure; gradings likewise."""
    step_timeout_s: float = Field(default=1800.0, gt=0)
    """One attempt at a training step."""
    warm_up_timeout_s: float = Field(default=3600.0, gt=0)
    """One attempt at version 0."""
    group_timeout_s: float = Field(default=7200.0, gt=0)
    """A prompt group at most, pauses left out: a rollout that has not ended by then has failed, and the group closes
    without it."""
    reserve: int = Field(default=0, ge=0)
    """Prompts kept to replace those that are quarantined or abandoned, in this order; without one left, or with 0, the
    step is smaller."""
    min_prompts: int = Field(default=1, ge=1)
    """Trained prompts that a step needs; with fewer the run waits for an operator (`approve` or `reject`)."""


class LimitSection(Section):
    """Reaching one pauses the run at once and says which; `stepwell limit` moves it. None: no limit."""

    steps: int | None = Field(default=None, ge=1)
    """Training steps begun."""
    hours: float | None = Field(default=None, gt=0)
    """Wall clock, pauses included."""
    gpu_hours: float | None = Field(default=None, gt=0)
    """Time of engines and trainer ranks, each counted as one accelerator, on a machine without any too."""
    generated_tokens: int | None = Field(default=None, ge=1)
    """Tokens generated, in training and validation."""
    sandbox_minutes: float | None = Field(default=None, gt=0)
    """Time that sandboxes were held for turns and tests."""


Range = tuple[float, float]
"""Lowest and highest allowed value."""


class GateSection(Section):
    """Where the run waits for `stepwell approve` or `stepwell reject`; a rejection stops it."""

    publish: bool = False
    """Before a new weight version is served."""
    validation: bool = False
    """Before a validation begins."""
    reward: Range | None = None
    """Mean reward of a step."""
    kl: Range | None = None
    """Estimate of the divergence of the trained policy from the one that generated, in nats a token."""
    mask_rate: Range | None = None
    """Share of a step's rollouts without a vote."""
    grad_norm: Range | None = None
    """Norm of a step's gradient before clipping."""
    pass_k: Range | None = None
    """pass@k on the set `main`."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        for name in BANDS:
            band = getattr(self, name)
            if band is not None and band[0] >= band[1]:
                raise ValueError(f"gates.{name} is {list(band)}: the lower bound comes first")
        return self


BANDS = ("reward", "kl", "mask_rate", "grad_norm", "pass_k")
"""Metrics that a gate can watch."""


class ForgedTasks(Section):
    """Tasks forged from templates."""

    source: Literal["forged"] = "forged"
    """Which task set."""
    seed: int = Field(default=0, ge=0)
    """The tasks, training and held out, follow from it alone."""


class PackageTasks(Section):
    """Tasks forged from packages of the Python Package Index with their own tests."""

    source: Literal["package"]
    """Which task set."""
    packages: tuple[str, ...] = Field(min_length=1)
    """Of `stepwell.tasks.packages.PACKAGES`: they give the training tasks and, from functions that no training task
    touches, those of the sets `main` and `confirm`."""
    held_out: tuple[str, ...] = ()
    """Packages that training never sees: they give the tasks of `validation.heldout_tasks`."""
    path: str | None = None
    """A set that `stepwell tasks forge` or `stepwell tasks audit` wrote: tasks of these packages are taken out of it.
    None: they are forged when the run begins."""
    seed: int = Field(default=0, ge=0)
    """Which defects are made; refused with `path`."""
    train: int = Field(ge=1)
    """Training tasks of all packages together, those that a warm-up demonstrates among them."""
    kinds: tuple[str, ...] = Field(default=tuple(kind.name for kind in KINDS), min_length=1)
    """Kinds of defect, of `stepwell.tasks.packages.mutation_kinds`; all unless given."""
    place_lines: int | None = Field(default=None, ge=1)
    """Each issue ends with the file and so many lines of it, among which the cause is, for policies that are too small
    to search. None: it names neither."""

    @model_validator(mode="after")
    def _known(self) -> Self:
        SetPlan(packages=self.packages, held_out=self.held_out).shares()
        if self.path is not None and self.seed:
            raise ValueError("seed would do nothing: the tasks of path are made")
        names = [kind.name for kind in KINDS]
        for unknown in sorted(set(self.kinds).difference(names)):
            meant = did_you_mean(unknown, names)
            raise ValueError(f"no kind of defect {unknown!r}{f' ({meant})' if meant else ''}: {', '.join(names)}")
        return self


class R2ETasks(Section):
    """Tasks of R2E-Gym, imported by `stepwell tasks import-r2e`."""

    source: Literal["r2e"]
    """Which task set."""
    path: str
    """Folder of the set, with the splits `train` and `validation`. Training takes the tasks in the set's order, and
    again from the first when they are used up."""
    images: str | None = None
    """Folder of the images on this machine; None: where they were when the set was imported."""
