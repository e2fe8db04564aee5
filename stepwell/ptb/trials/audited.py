"""A run set as an auditor has it: what its ledger holds, and what follows from its first event."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from stepwell.audit.record import RunRecord, StreamRecord
from stepwell.events import (
    AgentRestarted,
    RunSetCreated,
    RunSetFinished,
    TrialCreated,
    TrialOverridden,
    TrialScored,
)
from stepwell.events.base import Event
from stepwell.events.canonical import digest_of_json
from stepwell.events.streams import override_stream, run_set_stream, trial_stream
from stepwell.ptb.contamination.report import Report
from stepwell.ptb.evaluation.result import EvaluationResult, PassResult
from stepwell.ptb.identity.report import IdentityReport
from stepwell.ptb.judges.votes import Judged
from stepwell.ptb.leaderboard.records import Basis
from stepwell.ptb.regimes import Regime
from stepwell.ptb.trials.fold import TrialFold, fold_trial
from stepwell.ptb.trials.manifest import Entry
from stepwell.ptb.trials.recipe import AgentSection, RunSetRecipe

T = TypeVar("T")
E = TypeVar("E", bound=Event)

ENTRIES: TypeAdapter[tuple[Entry, ...]] = TypeAdapter(tuple[Entry, ...])
"""Of a manifest."""
ANSWERS: TypeAdapter[PassResult] = TypeAdapter(PassResult)
RESULT: TypeAdapter[EvaluationResult] = TypeAdapter(EvaluationResult)
VOTES: TypeAdapter[Judged] = TypeAdapter(Judged)
QUESTION: TypeAdapter[list[dict[str, str]]] = TypeAdapter(list[dict[str, str]])
IDENTITY: TypeAdapter[IdentityReport | dict[str, str]] = TypeAdapter(IdentityReport | dict[str, str])
"""Of a model that cannot be read it is an object that says why."""
CONTAMINATION: TypeAdapter[Report] = TypeAdapter(Report)


@dataclass(frozen=True)
class AuditedTrial:
    """A trial that has begun."""

    cell: str
    """Its name in the run set."""
    stream: StreamRecord
    created: TrialCreated
    agent: AgentSection | None
    """As the recipe has it; None of a reference, or of an agent that the recipe has not."""

    @property
    def name(self) -> str:
        """Of its stream."""
        return self.stream.name

    @cached_property
    def fold(self) -> TrialFold:
        """Where it stands."""
        return fold_trial([placed.event for placed in self.stream.events])

    @property
    def place(self) -> tuple[str, str]:
        """Base model and benchmark."""
        return self.created.base_model, self.created.benchmark

    @cached_property
    def start(self) -> int:
        """Place of the last start again, before which what has an epoch is void; -1 if there was none."""
        return max((seq for seq, _ in self.stream.every(AgentRestarted)), default=-1)

    def counting(self, kind: type[E]) -> list[tuple[int, E]]:
        """Place and body of each event of a type since the last start."""
        return [(seq, event) for seq, event in self.stream.every(kind) if seq > self.start]

    @property
    def scored(self) -> tuple[int, TrialScored] | None:
        """Its record, if it has one."""
        return self.stream.first(TrialScored)


@dataclass(frozen=True)
class RunSetRecord:
    """A run set. What cannot be read of it is None here, and a rule says so."""

    stored: RunRecord
    """Streams and blobs: what an audit of any ledger needs."""
    regime_here: Regime | None = None
    """What the recipe's regime is on the machine of the audit; None if it is not there."""
    digests_here: Mapping[str, str] | None = None
    """What the recipe's models and files are there, as the first event names them; None: nobody looked."""

    @property
    def name(self) -> str:
        """The run set's."""
        return self.stored.run

    @property
    def own(self) -> str:
        """Name of its own stream."""
        return run_set_stream(self.name)

    @cached_property
    def created(self) -> RunSetCreated | None:
        """Its first event; None where it does not verify."""
        return self._of_own(RunSetCreated, 0)

    @cached_property
    def finished(self) -> RunSetFinished | None:
        """Its last event, if it ended."""
        return self._of_own(RunSetFinished, None)

    @cached_property
    def recipe(self) -> RunSetRecipe | None:
        """What decides its trials."""
        try:
            return None if self.created is None else RunSetRecipe.model_validate(self.created.recipe)
        except ValidationError:
            return None

    @cached_property
    def basis(self) -> Basis | None:
        """What its scores are made on."""
        try:
            return None if self.created is None else Basis.model_validate(self.created.basis)
        except ValidationError:
            return None

    @cached_property
    def regime(self) -> Regime | None:
        """The regime that it began with; None where the machine of the audit has none, or another."""
        if self.created is None or self.regime_here is None:
            return None
        found = digest_of_json(self.regime_here.model_dump(mode="json"))
        return self.regime_here if found == self.created.digests.get("regime") else None

    @cached_property
    def trials(self) -> tuple[AuditedTrial, ...]:
        """Those that have begun, in the order of their streams."""
        found: list[AuditedTrial] = []
        agents = {} if self.recipe is None else {agent.name: agent for agent in self.recipe.agents}
        for stream in self.stored.of_kind("trial"):
            first = stream.events[0] if stream.events else None
            if first is not None and first.seq == 0 and isinstance(first.event, TrialCreated):
                created, cell = first.event, stream.name.removeprefix(trial_stream(self.name, ""))
                agent = agents.get(created.agent) if created.role == "agent" else None
                found.append(AuditedTrial(cell, stream, created, agent))
        return tuple(found)

    def overrides(self, cell: str) -> list[tuple[int, TrialOverridden]]:
        """What persons decided otherwise than a trial's checks and judges."""
        stream = self.stored.streams.get(override_stream(self.name, cell))
        return stream.every(TrialOverridden) if stream else []

    def read(self, digest: str, form: TypeAdapter[T]) -> T | None:
        """What a blob says; None where it is missing or of another form: the rules `blobs` and `documents` say so."""
        data = self.stored.documents.get(digest)
        try:
            return None if data is None else form.validate_json(data)
        except ValidationError:
            return None

    def _of_own(self, kind: type[E], seq: int | None) -> E | None:
        stream = self.stored.streams.get(self.own)
        found = stream.first(kind) if stream else None
        return None if found is None or (seq is not None and found[0] != seq) else found[1]
