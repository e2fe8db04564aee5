"""Events with whatever a test does not say filled in: one place that knows every field."""

from typing import Any, TypeVar

from stepwell.agent.protocol import StopReason
from stepwell.events import (
    AttemptOpened,
    EngineStarted,
    GroupClosed,
    GroupOpened,
    HistoryArchived,
    HoldRaised,
    OperatorActed,
    RolloutCleared,
    RolloutEnded,
    RolloutFailed,
    RolloutGraded,
    RolloutTainted,
    RunCreated,
    RunFinished,
    StallBegan,
    StallEnded,
    StepAdmitted,
    StepCompleted,
    StepDispatched,
    StepTrained,
    TurnRecorded,
    UsageRecorded,
    ValidationClosed,
    ValidationOpened,
    ValidationRecorded,
    VerdictReached,
    VersionAttested,
    VersionCreated,
)
from stepwell.events.base import Event
from stepwell.events.children import Commitment
from stepwell.events.group_closed import Fate
from stepwell.events.numbers import WeightDigests
from stepwell.events.run_finished import RunEnd

E = TypeVar("E", bound=Event)

DIGEST = "0" * 64
COMMITMENT = Commitment(count=0, heads=DIGEST, facts=DIGEST)
DIGESTS = WeightDigests(master=DIGEST, exported=DIGEST, optimiser=DIGEST)

DEFAULTS: dict[type[Event], dict[str, Any]] = {
    AttemptOpened: {"attempt": "a", "worker": "a/1", "resumed_at": 0},
    EngineStarted: {"engine": "e1", "backend": "transformers", "worker": "a/3"},
    GroupClosed: {"fate": Fate.TRAINED, "scores": [], "children": [], "rollout_facts": DIGEST, "cause": ""},
    GroupOpened: {"task": DIGEST, "task_id": "t", "version": 0, "samples": 4},
    HistoryArchived: {
        "workflow": "stepwell/r",
        "execution": "x",
        "kind": "TrainingRun",
        "status": "completed",
        "closed_at": "2026-01-31T12:00:00+00:00",
        "events": 3,
        "history": DIGEST,
    },
    HoldRaised: {"number": 0, "cause": "the recipe asks for it"},
    OperatorActed: {"arguments": {}, "who": "ann@host", "reason": "because"},
    RolloutCleared: {"number": 0, "who": "ann@host", "reason": "it was another"},
    RolloutEnded: {
        "reason": StopReason.FINISHED,
        "epoch": 0,
        "turns": 1,
        "generated_tokens": 10,
        "total_tokens": 110,
        "content": DIGEST,
        "changed": DIGEST,
        "tree": DIGEST,
        "verdict_key": DIGEST,
    },
    RolloutFailed: {"failure": "infra", "cause": "the host went away"},
    RolloutGraded: {"verdict_key": DIGEST, "timed_out": False, "verdict_head": DIGEST, "reused": False},
    RolloutTainted: {"number": 0, "who": "ann@host", "reason": "it saw the tests"},
    RunCreated: {"recipe_digest": DIGEST, "task_set": DIGEST},
    RunFinished: {"end": RunEnd.MAX_STEPS},
    StallBegan: {"number": 0, "what": "trainer", "cause": "no trainer is there", "noticed_after_s": 20.0},
    StallEnded: {"number": 0, "lasted_s": 12.0},
    StepAdmitted: {
        "manifest": DIGEST,
        "group_facts": DIGEST,
        "group_heads": COMMITMENT,
        "rollouts": 8,
        "masked": 0,
        "reward_mean": 0.5,
    },
    StepCompleted: {"weights_digest": DIGEST, "weights_head": DIGEST},
    StepDispatched: {"settings": {}},
    StepTrained: {
        "manifest": DIGEST,
        "digests": DIGESTS,
        "export": DIGEST,
        "probe": [-1.0],
        "metrics": {},
        "timings_s": {},
        "environment": {},
        "duration_s": 1.0,
    },
    TurnRecorded: {
        "turn": 0,
        "epoch": 0,
        "payload": DIGEST,
        "version": 0,
        "prompt_tokens": 100,
        "generated_tokens": 10,
        "tool": "edit",
        "tree": DIGEST,
        "engine": "e1",
        "generate_s": 0.1,
        "tool_s": 0.1,
    },
    UsageRecorded: {
        "number": 0,
        "hours": 0.5,
        "gpu_hours": 0.5,
        "generated_tokens": 100,
        "sandbox_minutes": 3.0,
        "seen_xid": 1,
        "seen_position": 1,
    },
    ValidationClosed: {"k": 4, "children_facts": DIGEST, "children_heads": COMMITMENT},
    ValidationOpened: {"weights_digest": DIGEST, "dataset": "main", "samples": 4},
    ValidationRecorded: {"dataset": "main", "k": 4, "stream_head": DIGEST, "validation_facts": DIGEST},
    VerdictReached: {
        "task": DIGEST,
        "tree": DIGEST,
        "grader": DIGEST,
        "timed_out": False,
        "report": DIGEST,
        "duration_s": 0.1,
    },
    VersionAttested: {"digest": DIGEST, "probe_difference": 2e-7, "load": 0, "load_s": 0.5},
    VersionCreated: {
        "origin": "warm-up",
        "digests": DIGESTS,
        "export": DIGEST,
        "probe_ids": [1, 2],
        "probe": [-1.0],
        "metrics": {"loss": 0.5},
        "environment": {},
        "duration_s": 1.0,
    },
}


def told(kind: type[E], **fields: Any) -> E:
    """An event of a type with these fields, the others as `DEFAULTS` has them."""
    return kind(**{**DEFAULTS.get(kind, {}), **fields})
