"""Every stream is what was appended: hashes, chain, sequence, canonical form, appender, and types that belong there."""

from collections.abc import Mapping

from stepwell.audit.finding import Finding, Tally
from stepwell.audit.record import RunRecord, StreamRecord

HOLDS = "each stream's bytes hash to its chain, without a gap, and its events belong there"
UNIT = "events"

TYPES: Mapping[str, frozenset[str]] = {
    "run": frozenset(
        {
            "RunCreated",
            "RunForked",
            "StepDispatched",
            "PromptReplaced",
            "StepAdmitted",
            "StepCompleted",
            "ValidationRecorded",
            "RunFinished",
        }
    ),
    "operator": frozenset({"OperatorActed", "HoldRaised"}),
    "quarantine": frozenset({"RolloutTainted", "RolloutCleared"}),
    "health": frozenset({"StallBegan", "StallEnded", "UsageRecorded"}),
    "history": frozenset({"HistoryArchived"}),
    "seal": frozenset({"KeyDeclared", "HeadSigned"}),
    "deleted": frozenset({"PayloadDeleted"}),
    "weights": frozenset({"VersionCreated", "StepTrained", "CheckpointSaved", "AttemptOpened"}),
    "prompt": frozenset({"GroupOpened", "GroupClosed"}),
    "rollout": frozenset(
        {
            "AttemptOpened",
            "TurnRecorded",
            "RolloutRestarted",
            "RowsRecorded",
            "RolloutEnded",
            "RolloutGraded",
            "RolloutFailed",
        }
    ),
    "verdict": frozenset({"VerdictReached"}),
    "validation": frozenset({"ValidationOpened", "ValidationClosed"}),
    "engine": frozenset({"EngineStarted", "VersionAttested"}),
    "run-set": frozenset({"RunSetCreated", "RunSetFinished"}),
    "trial": frozenset(
        {
            "TrialCreated",
            "AttemptOpened",
            "TrialPrepared",
            "EnvironmentTested",
            "AgentStarted",
            "AgentRestarted",
            "AgentEnded",
            "SubmissionTaken",
            "CheckReached",
            "JudgementReached",
            "PassScored",
            "SubmissionEvaluated",
            "TrialAbandoned",
            "TrialScored",
        }
    ),
    "override": frozenset({"TrialOverridden"}),
}
"""Types of event by kind of stream."""

FIRST: Mapping[str, str] = {
    "run": "RunCreated",
    "prompt": "GroupOpened",
    "validation": "ValidationOpened",
    "verdict": "VerdictReached",
    "engine": "EngineStarted",
    "seal": "KeyDeclared",
    "deleted": "PayloadDeleted",
    "run-set": "RunSetCreated",
    "trial": "TrialCreated",
}
"""Type of a stream's first event."""

LAST = frozenset(
    {
        "RunFinished",
        "GroupClosed",
        "ValidationClosed",
        "VerdictReached",
        "PayloadDeleted",
        "RunSetFinished",
        "TrialScored",
    }
)
"""Types after which nothing follows in their stream."""


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule; the bytes were checked when they were read."""
    tally.findings += [Finding(fault.stream, fault.seq, fault.why) for fault in record.faults]
    for stream in (*record.streams.values(), *record.ancestors.values()):
        _check_types(stream, tally)


def _check_types(stream: StreamRecord, tally: Tally) -> None:
    kind = stream.name.partition("/")[0]
    allowed = TYPES.get(kind, frozenset())
    tally.checked += len(stream.turns)
    if stream.turns and "TurnRecorded" not in allowed:
        tally.findings.append(Finding(stream.name, stream.turns[0].seq, f"a TurnRecorded in a {kind} stream"))
    for seq, event in stream.events:
        tally.expect(event.type in allowed, stream.name, seq, f"{event.type} does not belong into a {kind} stream")
        if seq == 0 and kind in FIRST and event.type != FIRST[kind]:
            tally.findings.append(Finding(stream.name, 0, f"begins with {event.type}, wanted {FIRST[kind]}"))
        if event.type in LAST and seq != stream.child.seq:
            tally.findings.append(Finding(stream.name, seq + 1, f"an event after {event.type}, which is the last"))
