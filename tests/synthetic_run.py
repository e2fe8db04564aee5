"""Runs told by hand: real events in real envelopes, at times that a test chooses."""

import json
import math
import random
from datetime import UTC, datetime
from typing import Any

from stepwell.events import (
    AttemptOpened,
    EngineStarted,
    GroupClosed,
    HoldRaised,
    OperatorActed,
    PromptReplaced,
    RolloutEnded,
    RolloutFailed,
    RolloutGraded,
    RolloutRestarted,
    RunCreated,
    RunFinished,
    StepAdmitted,
    StepCompleted,
    StepDispatched,
    StepTrained,
    TurnRecorded,
    ValidationClosed,
    ValidationOpened,
    ValidationRecorded,
    VerdictReached,
    VersionAttested,
    VersionCreated,
)
from stepwell.events.base import Event
from stepwell.events.envelope import GENESIS, Envelope, seal
from stepwell.events.group_closed import Fate
from stepwell.events.run_finished import RunEnd
from tests.told import DIGEST, told

T0 = 1_780_000_000.0
"""Seconds since the epoch at a story's second 0."""
OWNERS = {"rollout": "sandbox:a/1", "verdict": "sandbox:a/1", "weights": "trainer:a/2", "engine": "engine:a/3"}
RECIPE: dict[str, Any] = {
    "name": "micro",
    "run": {"max_steps": 48, "mismatch_bound": 1e-3, "samples_per_prompt": 4},
    "validation": {"target": 0.69, "samples": 4},
    "engines": 1,
}


class Story:
    """Appends events to streams, each sealed at the time it is told for.

    Args:
        run: Name of the run.
    """

    def __init__(self, run: str = "micro-1") -> None:
        self.run = run
        self.told: list[tuple[Envelope, Event]] = []
        self._heads: dict[str, tuple[int, str]] = {}

    def tell(self, at_s: float, stream: str, event: Event, actor: str | None = None) -> None:
        """Appends an event at a second of the story."""
        seq, prev_hash = self._heads.get(stream, (0, GENESIS))
        time = datetime.fromtimestamp(T0 + at_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        envelope = seal(
            stream=stream,
            seq=seq,
            key=event.key(),
            type=event.type,
            schema=event.SCHEMA,
            actor=actor or OWNERS.get(stream.partition("/")[0], "control:a/0"),
            body=json.loads(json.dumps(event.body())),
            prev_hash=prev_hash,
            time=time,
        )
        self._heads[stream] = (seq + 1, envelope.hash)
        self.told.append((envelope, event))

    def created(self, at_s: float, recipe: dict[str, Any] | None = None) -> None:
        self.tell(at_s, f"run/{self.run}", told(RunCreated, recipe=RECIPE if recipe is None else recipe))

    def version_0(self, at_s: float, duration_s: float) -> None:
        self.tell(at_s, f"weights/{self.run}", told(VersionCreated, duration_s=duration_s))

    def engine(self, at_s: float, engine: str) -> None:
        self.tell(at_s, f"engine/{self.run}/{engine}", told(EngineStarted, engine=engine), f"engine:{engine}")

    def loaded(self, at_s: float, engine: str, version: int, load_s: float, load: int = 0) -> None:
        event = told(VersionAttested, version=version, load=load, load_s=load_s)
        self.tell(at_s, f"engine/{self.run}/{engine}", event, f"engine:{engine}")

    def dispatched(self, at_s: float, step: int, prompts: int = 2, version: int | None = None) -> None:
        event = told(StepDispatched, step=step, version=step if version is None else version, tasks=[DIGEST] * prompts)
        self.tell(at_s, f"run/{self.run}", event)

    def replaced(self, at_s: float, step: int, prompt: int, replaces: int) -> None:
        event = PromptReplaced(step=step, prompt=prompt, replaces=replaces, task=DIGEST)
        self.tell(at_s, f"run/{self.run}", event)

    def acted(self, at_s: float, action: str, **arguments: str | float) -> None:
        event = told(OperatorActed, action=action, arguments=arguments, update=f"u{at_s}")
        self.tell(at_s, f"operator/{self.run}", event)

    def held(self, at_s: float, hold: str) -> None:
        self.tell(at_s, f"operator/{self.run}", told(HoldRaised, hold=hold))

    def attempt(self, at_s: float, stream: str, name: str, worker: str = "a/1", resumed_at: int = 0) -> None:
        self.tell(at_s, stream, told(AttemptOpened, attempt=name, worker=worker, resumed_at=resumed_at))

    def turn(
        self,
        at_s: float,
        stream: str,
        turn: int,
        *,
        generate_s: float,
        tool_s: float,
        tokens: int,
        engine: str = "e1",
        epoch: int = 0,
    ) -> None:
        event = told(
            TurnRecorded,
            turn=turn,
            epoch=epoch,
            generated_tokens=tokens,
            engine=engine,
            generate_s=generate_s,
            tool_s=tool_s,
        )
        self.tell(at_s, stream, event)

    def restarted(self, at_s: float, stream: str, turn: int) -> None:
        self.tell(at_s, stream, RolloutRestarted(epoch=1, turn=turn, expected=DIGEST, found="1" * 64))

    def ended(self, at_s: float, stream: str, verdict_key: str = DIGEST, **fields: Any) -> None:
        self.tell(at_s, stream, told(RolloutEnded, verdict_key=verdict_key, **fields))

    def verdict(self, at_s: float, verdict_key: str, score: float, duration_s: float) -> None:
        self.tell(at_s, f"verdict/{verdict_key}", told(VerdictReached, score=score, duration_s=duration_s))

    def graded(self, at_s: float, stream: str, score: float, verdict_key: str = DIGEST, reused: bool = False) -> None:
        self.tell(at_s, stream, told(RolloutGraded, verdict_key=verdict_key, score=score, reused=reused))

    def failed(self, at_s: float, stream: str, cause: str) -> None:
        self.tell(at_s, stream, told(RolloutFailed, cause=cause))

    def closed(self, at_s: float, scope: str, prompt: int, fate: Fate, cause: str = "") -> None:
        self.tell(at_s, f"prompt/{self.run}/{scope}/{prompt}", told(GroupClosed, fate=fate, cause=cause))

    def admitted(self, at_s: float, step: int, reward_mean: float, rollouts: int = 8, masked: int = 0) -> None:
        event = told(StepAdmitted, step=step, rollouts=rollouts, masked=masked, reward_mean=reward_mean)
        self.tell(at_s, f"run/{self.run}", event)

    def trained(self, at_s: float, step: int, duration_s: float, metrics: dict[str, float]) -> None:
        event = told(StepTrained, step=step, parent=step, version=step + 1, metrics=metrics, duration_s=duration_s)
        self.tell(at_s, f"weights/{self.run}", event)

    def completed(self, at_s: float, step: int) -> None:
        self.tell(at_s, f"run/{self.run}", told(StepCompleted, step=step, version=step + 1, weights_seq=step + 1))

    def validation_opened(self, at_s: float, version: int, dataset: str, tasks: int) -> None:
        event = told(ValidationOpened, version=version, dataset=dataset, tasks=[DIGEST] * tasks)
        self.tell(at_s, f"validation/{self.run}/v{version}-{dataset}", event)

    def validation_closed(self, at_s: float, version: int, dataset: str, passed: list[int]) -> None:
        pass_1 = sum(passed) / 4 / len(passed)
        pass_k = sum(count > 0 for count in passed) / len(passed)
        closed = told(ValidationClosed, passed=passed, graded=[4] * len(passed), pass_1=pass_1, pass_k=pass_k)
        self.tell(at_s, f"validation/{self.run}/v{version}-{dataset}", closed)
        recorded = told(ValidationRecorded, version=version, dataset=dataset, pass_1=pass_1, pass_k=pass_k)
        self.tell(at_s, f"run/{self.run}", recorded)

    def finished(self, at_s: float, end: RunEnd, version: int, cause: str = "") -> None:
        self.tell(at_s, f"run/{self.run}", RunFinished(end=end, version=version, cause=cause))


def learning_run(steps: int = 24, seed: int = 0, finish: bool = True) -> Story:
    """A run as the micro recipe has them, smaller: a validation each eighth step, a retaken rollout, an engine lost."""
    story, dice = Story(), random.Random(seed)
    story.created(0)
    story.engine(4, "e1")
    story.version_0(190, 184)
    story.loaded(192, "e1", 0, 1.2)
    now, loads, engine = 192.5, 1, "e1"
    for version in range(steps + 1):
        if version % 8 == 0 or version == steps:
            for dataset in ("main", "heldout") if version in (0, steps) else ("main",):
                now = _validate(story, dice, now, version, dataset, 0.52 + 0.2 * (1 - math.exp(-version / 12)))
        if version == steps:
            break
        if version == steps // 2:
            engine = "e2"
            story.engine(now + 2, engine)
            story.loaded(now + 3, engine, version, 0.8)
            now += 3
        now = _step(story, dice, now, version, engine)
        story.loaded(now + 0.6, engine, version + 1, 0.5, loads)
        loads, now = loads + 1, now + 0.6
    if finish:
        story.finished(now + 0.3, RunEnd.TARGET, steps)
    return story


def _step(story: Story, dice: random.Random, now: float, step: int, engine: str) -> float:
    """Two prompts of four rollouts, then training; returns when it is done."""
    story.dispatched(now, step)
    solved = 0.0
    for prompt in range(2):
        for sample in range(4):
            stream, at = f"rollout/{story.run}/{step}/{prompt}/{sample}", now + 0.1
            story.attempt(at, stream, f"{stream}-1")
            for turn in range(3):
                at += dice.uniform(0.5, 0.9)
                story.turn(at, stream, turn, generate_s=0.4, tool_s=0.05, tokens=dice.randint(200, 900), engine=engine)
                if step == 5 and (prompt, sample, turn) == (1, 2, 1):
                    story.attempt(at + 1, stream, f"{stream}-2", worker="a/9", resumed_at=2)
                    at += 1.5
            key = f"{step:04d}{prompt}{sample}".ljust(64, "0")
            score = float(dice.random() < 0.35 + 0.35 * (1 - math.exp(-step / 14)))
            solved += score
            story.ended(at, stream, key)
            story.verdict(at + 0.3, key, score, 0.25)
            story.graded(at + 0.3, stream, score, key)
        story.closed(now + 3.5, str(step), prompt, Fate.TRAINED)
    story.admitted(now + 3.6, step, solved / 8)
    took = dice.uniform(1.5, 2.0)
    metrics = {
        "loss": dice.gauss(0, 0.02),
        "grad_norm": 0.6 + dice.random() * 0.5,
        "mismatch_mean": 10 ** dice.uniform(-4.9, -4.3),
        "mismatch_max": 10 ** dice.uniform(-3.6, -3.2),
        "entropy": 0.6 * math.exp(-step / 40),
        "clip_fraction": 0.0,
        "tokens": 12_000.0,
    }
    story.trained(now + 3.7 + took, step, took, metrics)
    story.completed(now + 3.75 + took, step)
    return now + 3.75 + took


def _validate(
    story: Story, dice: random.Random, now: float, version: int, dataset: str, chance: float, tasks: int = 64
) -> float:
    story.validation_opened(now, version, dataset, tasks)
    stream = f"rollout/{story.run}/v{version}-{dataset}/0/0"
    story.attempt(now + 0.1, stream, f"{stream}-1")
    for turn in range(6):
        story.turn(now + 1 + turn, stream, turn, generate_s=0.9, tool_s=0.1, tokens=4000)
    story.ended(now + 6.1, stream)
    story.graded(now + 6.4, stream, 1.0, reused=True)
    passed = [dice.choice([3, 4, 4]) if dice.random() < chance else 0 for _ in range(tasks)]
    for prompt in range(tasks):
        story.closed(now + 6.5, f"v{version}-{dataset}", prompt, Fate.VALIDATED)
    story.validation_closed(now + 6.6, version, dataset, passed)
    return now + 6.7
