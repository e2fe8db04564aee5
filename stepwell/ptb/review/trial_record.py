"""What is known of one trial. Whatever is not known is left out, and the review says so: no field has a default that
would pass."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Limit = Annotated[float, Field(gt=0, allow_inf_nan=False)] | Literal["none"]
"""Of what it is a limit, or that there was none; a limit that is left out is not known."""
NetworkMode = Literal["none", "allow", "deny", "open"]
"""No network, hosts that are named, all but hosts that are named, everything."""


class Strict(BaseModel):
    """What every part of a record is: frozen, and nothing in it that nobody reads."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Statement(Strict):
    """Something that the prompt tells the agent about its surroundings."""

    about: Name
    """`internet`, `time`, `evaluation`, `decontamination`, `api`, or another word."""
    says: Name
    """The sentence."""
    claims: str | float | None = None
    """For `internet` one of the network's modes, for `time` hours: compared with what was enforced."""
    holds: bool | None = None
    """For other statements, whether somebody checked that it was so."""


class Limits(Strict):
    """Of the agent."""

    hours: Limit | None = None
    tokens: Limit | None = None
    turns: Limit | None = None
    money: Limit | None = None
    """US dollars."""


class Network(Strict):
    """What the agent could reach."""

    mode: NetworkMode
    hosts: tuple[str, ...] = ()
    """Those that the mode names."""
    log: Name | None = None
    """Digest of the log of all requests."""


class Hardware(Strict):
    """What the agent had."""

    description: Name
    """Processor, GPU, memory."""
    checked: bool | None = None
    """Whether it was found to be so, and idle, before the clock started."""


class Secrets(Strict):
    """Of the redaction of what is published."""

    redacted: Count
    survivors: Count
    """Secrets that were found after it."""


class SelfTest(Strict):
    """Of the agent's surroundings."""

    passed: bool
    before_the_clock: bool
    looked_at: tuple[str, ...]
    """Such as that the GPU is idle, that files can be written, that the evaluation runs."""


class Interruption(Strict):
    """Something other than the rules that ended or stopped the agent."""

    kind: Literal["rate_limit", "credit", "crash", "infrastructure"]
    says: Name
    made_good: bool
    """Whether the time was given back, or the trial started from its start."""


class ScoredWith(Strict):
    """What really scored the trial; held against the basis that its score claims."""

    data: Name | None = None
    """Digest of the benchmark's files."""
    scorer: Name | None = None
    template: Name | None = None
    """Digest of the chat template."""
    template_by: Literal["base model", "path", "submission"] | None = None
    """What the template was chosen by."""
    environment: Name | None = None
    judge: Name | None = None
    """Version, where a judge scored answers."""


class ItemOutcome(Strict):
    """One answer of the final evaluation."""

    item: Name
    seed: Count
    """Of its pass."""
    worth: Annotated[float, Field(allow_inf_nan=False)] | None
    """As scored, at most 1; None if it could not be scored."""
    why: str
    """The scorer's reason."""
    question: str | None = None
    answer: str | None = None
    gold: str | None = None


class PassRecord(Strict):
    """One pass of the final evaluation."""

    seed: Count
    expected: Count
    """Items."""
    scored: Count
    judge_errors: Count | None = None
    """Judgements that failed or could not be read, where a judge scores."""


class ContaminationRecord(Strict):
    """What the check of contamination said."""

    verdict: Literal["clean", "tolerated", "contaminated", "nothing scanned"]
    scanned_rows: Count
    unscanned: Count
    """Rows or files that it could not read."""
    leaks: Count
    report: Name | None = None
    """Digest."""


class IdentityRecord(Strict):
    """What the check of the submitted model's origin said."""

    verdict: Name
    passed: bool
    weights_compared: bool
    """Whether weights were, and not the configuration alone."""
    report: Name | None = None
    """Digest."""


class VotesRecord(Strict):
    """The judges' votes on one charge."""

    charge: Name
    judges: tuple[str, ...]
    """Version of each."""
    vendors: tuple[str, ...] | None = None
    """Whose model each is."""
    votes: tuple[bool | None, ...]
    """Whether each found a violation; None for a judge that failed."""
    ruling: Literal["violation", "none", "unscored"]
    override: str | None = None
    """Reason of a person who decided otherwise."""


class Dataset(Strict):
    """Something that the agent trained on."""

    source: Name
    """Address, or how it was made."""
    digest: Name | None = None
    revision: Name | None = None


class TrialRecord(Strict):
    """What is known of one trial. A digest names something that is kept; None is not known."""

    kind: Literal["trial"] = "trial"
    trial: Name
    """As in its cell."""

    prompt: Name | None = None
    """Digest of the exact text."""
    prompt_shared: Name | None = None
    """Digest of the text without this scaffold's additions."""
    prompt_additions: tuple[str, ...] | None = None
    """Sentences that are this scaffold's alone."""
    statements: tuple[Statement, ...] | None = None
    rules: Name | None = None
    """Version."""
    scaffold: Name | None = None
    scaffold_version: Name | None = None
    command: tuple[str, ...] | None = None
    model_asked: Name | None = None
    model_resolved: Name | None = None
    """As the provider resolved it."""
    vendor: Name | None = None
    """Whose model the agent is."""
    effort: Name | None = None
    """`default` if none was set."""
    temperature: float | Literal["default"] | None = None
    limits: Limits | None = None
    tools: tuple[str, ...] | None = None
    network: Network | None = None
    keys: tuple[str, ...] | None = None
    """Names of the secrets that the agent was given."""
    hardware: Hardware | None = None
    container: Name | None = None
    """Digest."""
    packages: Name | None = None
    """Digest of the list of installed packages."""
    scored_with: ScoredWith | None = None

    trace_raw: Name | None = None
    """Digest."""
    trace_parsed: Name | None = None
    """Digest."""
    trace_stamped: bool | None = None
    """Whether its lines have times."""
    secrets: Secrets | None = None
    workspace: Name | None = None
    """Digest of what the agent left."""
    model_configuration: Name | None = None
    """Digest."""
    weights: Name | None = None
    """Digest."""
    items: tuple[ItemOutcome, ...] | None = None
    exchanges: Name | None = None
    """Digest of what all judges were asked and said."""
    resources: Name | None = None
    """Digest of the log of GPU, processor, memory and disk."""

    rescored_equal: bool | None = None
    """Whether scoring again from what is kept gave the same to the bit."""
    passes: tuple[PassRecord, ...] | None = None
    worked_s: Amount | None = None
    """Time that the agent could work."""
    interruptions: tuple[Interruption, ...] | None = None
    attempts: Annotated[int, Field(ge=1)] | None = None
    """Times that the trial was started from its start."""
    retry_policy: Name | None = None
    """What is tried again, and how often: in one word, or its digest."""
    self_test: SelfTest | None = None
    model_loads: bool | None = None
    """Whether the submitted model could be loaded."""

    contamination: ContaminationRecord | None = None
    identity: IdentityRecord | None = None
    votes: tuple[VotesRecord, ...] | None = None
    datasets: tuple[Dataset, ...] | None = None
    own_score: Annotated[float, Field(ge=0, le=100)] | None = None
    """Points that the agent itself last measured for what it submitted."""
    elsewhere: dict[str, Annotated[float, Field(ge=0, le=100)]] | None = None
    """Points of the submitted model on benchmarks that it was not trained for."""
