"""A run set's recipe: everything that decides its trials."""

import json
from typing import Literal, Self

from pydantic import Field, model_validator

from stepwell.contracts.trial import RunSetPlan, TrialPlan
from stepwell.events.canonical import digest_of_json
from stepwell.ptb.contamination.report import ALLOWED_LEAKS
from stepwell.ptb.evaluation.order import EngineSettings, EvaluationLimits
from stepwell.ptb.judges import CHARGES, ChargeName
from stepwell.ptb.network import NetworkPolicy
from stepwell.ptb.prompts import Tag
from stepwell.ptb.scaffolds import scaffold
from stepwell.ptb.supervisor.rules import Prices
from stepwell.ptb.trials.cells import Places, TrialCell, matrix
from stepwell.recipe.sections import Section

NAME = r"^[a-z0-9][a-z0-9-]{0,40}$"


class ModelSection(Section):
    """Folders of a base model; relative ones are looked for from the recipe."""

    base: str
    """Of the base model itself."""
    instruct: str | None = None
    """Of its publisher's instruct model, of which nothing may be in a submission; without one only the distance to the
    base counts."""


class MountSection(Section):
    """What an agent sees of this machine, read-only."""

    source: str
    """Here; a relative one is looked for from the recipe."""
    at: str
    """In the agent's sandbox."""


class AgentSection(Section):
    """An agent: a scaffold with its settings. Two agents that differ in any of this are never averaged."""

    name: str = Field(pattern=NAME)
    """How its row is called, in tables and streams."""
    scaffold: str
    """Name of a declared scaffold (`stepwell.ptb.scaffolds`)."""
    model: str = Field(min_length=1)
    """That its calls go to."""
    command: tuple[str, ...] = ()
    """Program and arguments, of a scaffold that takes any: `shell`."""
    effort: str | None = None
    """Reasoning effort."""
    hours: float | None = Field(default=None, gt=0)
    """Another time than the run set's: an ablation."""
    tokens: int | None = Field(default=None, ge=1)
    """Most tokens of a trial."""
    money: float | None = Field(default=None, gt=0)
    """Most US dollars of a trial."""
    prices: Prices | None = None
    """Of its model's tokens, where its scaffold does not say what they cost."""
    reprompt: bool = False
    """Whether it is told to go on when it stops early."""
    secrets: tuple[str, ...] = ()
    """Names of environment variables of the trial worker that it is given; values stand in no file and no event."""
    mounts: tuple[MountSection, ...] = ()
    """What it sees beside what all see."""


class PromptSection(Section):
    """What agents are told of what is enforced."""

    says: dict[Tag, str] = Field(default_factory=dict)
    """What the prompt is to say of a thing, where that is not what is so: `internet = "open"`, as the published one."""
    contradictions: Literal["refuse", "say"] = "refuse"
    """What becomes of a prompt that says what is not so: no trial, or the prompt corrects itself; recorded either
    way."""


class BoundsSection(Section):
    """Most that an agent may take of its host."""

    memory_mib: int = Field(default=16384, ge=64)
    """Of all its processes together."""
    processes: int = Field(default=4096, ge=8)
    """At once."""
    disk_mib: int = Field(default=262144, ge=16)
    """In its work folder."""


class JudgesSection(Section):
    """Who decides what no program can."""

    address: str | None = None
    """OpenAI-compatible, up to the version."""
    model: str | None = None
    """Model behind the address."""
    effort: str | None = None
    """Its reasoning effort."""
    recorded: str | None = None
    """File of recorded judgements, instead of an address."""
    key: str | None = None
    """Name of the environment variable with the address's key."""
    charges: tuple[ChargeName, ...] = tuple(CHARGES)
    """What they are asked."""

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.address is None) == (self.recorded is None):
            raise ValueError("wanted an address with a model, or a file of recorded judgements, and not both")
        if (self.address is None) != (self.model is None):
            raise ValueError("address and model go together")
        return self


class CheckSection(Section):
    """The checks that are programs."""

    allowed_leaks: int = Field(default=ALLOWED_LEAKS, ge=0)
    """Rows of the benchmark that pass as accidents."""
    paraphrases: bool = False
    """Whether texts are compared by meaning too, which needs the wheel of the embedding."""

    @property
    def versions(self) -> tuple[str, ...]:
        """Of both: part of what makes scores comparable."""
        by_meaning = ", paraphrases" if self.paraphrases else ""
        return ("identity-1", f"contamination-1, {self.allowed_leaks} allowed{by_meaning}")


class EvaluationSection(Section):
    """The final evaluation."""

    engine: EngineSettings = EngineSettings()
    """What generates."""
    limits: EvaluationLimits = EvaluationLimits()
    """Of its sandbox."""
    timeout_s: float = Field(default=8 * 3600.0, gt=0)
    """Of one trial."""


class TrialFailureSection(Section):
    """Budgets of infrastructure, none of which ever decides a score."""

    host_restarts: int = Field(default=2, ge=0)
    """How often a trial may start again because its host was lost."""
    attempts: int = Field(default=5, ge=1)
    """At each step but the agent's."""
    lease_s: float = Field(default=30.0, gt=0)
    """An agent whose worker is silent for this long is frozen, and for ten times as long ended."""


class RunSetRecipe(Section):
    """What `stepwell ptb run` is given, resolved: every key has its value. It is a run set's first event."""

    name: str = Field(pattern=NAME)
    """Names the run sets: `<name>-<n>`."""
    regime: str
    """`v1.0`, `v1.1`, `v1.2`, or a TOML file of one's own."""
    files: str
    """TOML file that names the benchmarks' files."""
    seed: int = Field(default=0, ge=0)
    """Every seed of the trials follows from it."""
    repetitions: int = Field(default=1, ge=1)
    """Trials of each agent on each base model and benchmark."""
    references: tuple[Literal["base", "instruct"], ...] = ("base",)
    """Models that are scored beside the agents'."""
    reference_models: tuple[str, ...] | None = None
    """Base models of which that is done; all of the regime's by default, since a ranking needs a score of each."""
    reference_benchmarks: tuple[str, ...] | None = None
    """Likewise."""
    base_models: tuple[str, ...] | None = None
    """Some of the regime's; all by default. What is left out counts as missing."""
    benchmarks: tuple[str, ...] | None = None
    """Likewise."""
    concurrency: int = Field(default=1, ge=1)
    """Trials at once."""
    trials_per_history: int = Field(default=50, ge=1)
    """Trials after which the workflow continues as new."""
    gpus: int = Field(default=0, ge=0)
    """Of one agent."""
    hours: float | None = Field(default=None, gt=0)
    """Of one agent on one cell; the regime's by default."""
    models: dict[str, ModelSection]
    """Folders by base model."""
    mounts: tuple[MountSection, ...] = ()
    """What every agent sees of this machine."""
    python: bool = True
    """Whether every agent has this process's own Python, with all that is installed for it."""
    image: str | None = None
    """SIF or unpacked root whose system every agent sees; this machine's by default."""
    agents: tuple[AgentSection, ...]
    """Who post-trains; none scores the references alone."""
    network: NetworkPolicy = NetworkPolicy(mode="none")
    """What every agent reaches."""
    prompt: PromptSection = PromptSection()
    """What every agent is told."""
    bounds: BoundsSection = BoundsSection()
    """Of every agent."""
    judges: JudgesSection | None = None
    """None: no charge is judged, which the comparability key says."""
    checks: CheckSection = CheckSection()
    """Of every submission."""
    evaluation: EvaluationSection = EvaluationSection()
    """Of every submission, and of the references."""
    failures: TrialFailureSection = TrialFailureSection()
    """Budgets of infrastructure."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        names = [agent.name for agent in self.agents]
        if len(set(names)) < len(names) or {"base", "instruct"} & set(names):
            raise ValueError(f"agents are called {', '.join(names)}: wanted different names, none base or instruct")
        if self.image is not None and self.gpus:
            raise ValueError("gpus in an image: its system lacks the libraries of this machine's driver; leave one out")
        for agent in self.agents:
            self._check(agent)
        return self

    def _check(self, agent: AgentSection) -> None:
        """Refuses an agent whose scaffold could not start it, or not reach its model."""
        declared = scaffold(agent.scaffold)
        declared.check(agent.model, agent.effort, agent.secrets, agent.command)
        if agent.reprompt and not declared.again:
            raise ValueError(f"agent {agent.name}: reprompt: {agent.scaffold} cannot be told to go on; leave it out")
        provider = declared.provider_of(agent.model)
        for host in provider.hosts if provider is not None else ():
            verdict = self.network.judge(host, 443)
            if not verdict.allowed:
                raise ValueError(
                    f"agent {agent.name}: its model is at {host}, which the network policy does not let through "
                    f"({verdict.reason}): allow it"
                )

    @property
    def digest(self) -> str:
        """Digest of the canonical JSON of all its values."""
        return digest_of_json(json.loads(self.model_dump_json()))

    def agent(self, name: str) -> AgentSection:
        """The agent of that name.

        Raises:
            KeyError: there is none.
        """
        return {agent.name: agent for agent in self.agents}[name]

    def hours_of(self, agent: AgentSection) -> float:
        """Its time."""
        assert self.hours is not None  # loading fills it in
        return agent.hours or self.hours

    def cells(self) -> tuple[TrialCell, ...]:
        """All trials. Raises ValueError as `matrix`."""
        assert self.base_models is not None  # loading fills all four in
        assert self.benchmarks is not None
        assert self.reference_models is not None
        assert self.reference_benchmarks is not None
        references = Places(self.reference_models, self.reference_benchmarks)
        names = [agent.name for agent in self.agents]
        agents = Places(self.base_models, self.benchmarks)
        return matrix(names, agents, self.repetitions, self.references, references)

    @property
    def all_models(self) -> tuple[str, ...]:
        """Base models that any trial is about."""
        return tuple(dict.fromkeys([*(self.base_models or ()), *self._referred(self.reference_models)]))

    @property
    def all_benchmarks(self) -> tuple[str, ...]:
        """Benchmarks that any trial is about."""
        return tuple(dict.fromkeys([*(self.benchmarks or ()), *self._referred(self.reference_benchmarks)]))

    def _referred(self, names: tuple[str, ...] | None) -> tuple[str, ...]:
        return (names or ()) if self.references else ()

    def plan(self) -> RunSetPlan:
        """What the workflows see of it."""
        longest = max([self.hours_of(agent) for agent in self.agents], default=0.0)
        return RunSetPlan(
            concurrency=self.concurrency,
            trials_per_history=self.trials_per_history,
            trial=TrialPlan(
                hours=longest,
                host_restarts=self.failures.host_restarts,
                attempts=self.failures.attempts,
                lost_after_s=10 * self.failures.lease_s,
                evaluation_s=self.evaluation.timeout_s,
            ),
        )
