"""A small run with every commitment right, written to a real ledger or to memory, and lies that can be told in it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from db.blobs import blob_digest
from db.ledger import Ledger
from db.owners import OWNERS
from stepwell.agent.protocol import StopReason
from stepwell.audit.blob_names import documents_of
from stepwell.audit.record import RecordBuilder, RunRecord
from stepwell.events import (
    AttemptOpened,
    EngineStarted,
    GroupClosed,
    GroupOpened,
    RolloutEnded,
    RolloutFailed,
    RolloutGraded,
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
from stepwell.events.base import Event, facts_digest
from stepwell.events.canonical import canonical_json
from stepwell.events.children import ChildHead, Commitment, commitment_blob, facts_of_children
from stepwell.events.envelope import GENESIS, seal
from stepwell.events.group_closed import Fate
from stepwell.events.numbers import WeightDigests
from stepwell.events.run_finished import RunEnd
from stepwell.events.streams import (
    engine_stream,
    prompt_stream,
    rollout_stream,
    run_stream,
    validation_scope,
    validation_stream,
    verdict_stream,
    weights_stream,
)
from stepwell.rl.batching import RolloutFacts, build_manifest
from stepwell.rl.config import GrpoConfig, PackingConfig
from stepwell.rl.masks import MaskReason

ENGINE = "e1"
PROMPTS, SAMPLES, STEPS = 2, 3, 2
TREE = "7" * 64
Lie = Callable[[str, Event], Event | None]
"""From a stream's name and an event to the event that is appended in its place; None drops it."""


def truth(_: str, event: Event) -> Event | None:
    """Changes nothing."""
    return event


@dataclass(frozen=True)
class Told:
    """A change of the events that fit, for readable tables of tests."""

    kind: type[Event]
    changes: dict[str, Any]
    where: str = ""
    """End of the stream's name."""
    step: int | None = None
    """Training step of the event, for those that have one."""

    def __call__(self, stream: str, event: Event) -> Event | None:
        fits = isinstance(event, self.kind) and stream.endswith(self.where)
        if self.step is not None:
            fits = fits and getattr(event, "step", None) == self.step
        return event.model_copy(update=self.changes) if fits else event


class Book(ABC):
    """Streams and blobs that a run is written to."""

    def __init__(self, lie: Lie = truth) -> None:
        self._lie = lie
        self.run = ""
        self.events: dict[str, list[Event]] = {}
        self.hashes: dict[str, list[str]] = {}

    async def append(self, stream: str, *events: Event) -> None:
        """Appends what the lie makes of the events."""
        told = [changed for event in events if (changed := self._lie(stream, event)) is not None]
        for event in told:
            at = len(self.events.setdefault(stream, []))
            self.hashes.setdefault(stream, []).append(await self._store(stream, at, event))
            self.events[stream].append(event)

    def head(self, stream: str) -> ChildHead:
        """Where a stream ends."""
        events = self.events[stream]
        return ChildHead(stream=stream, seq=len(events) - 1, head=self.hashes[stream][-1], facts=facts_digest(events))

    @abstractmethod
    async def put(self, data: bytes) -> str:
        """Stores a blob."""

    @abstractmethod
    async def _store(self, stream: str, seq: int, event: Event) -> str:
        """Appends an event; returns its hash."""


@dataclass
class MemoryBook(Book):
    """In memory, for the rules alone."""

    lie: Lie = truth
    blobs: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__(self.lie)

    async def put(self, data: bytes) -> str:
        self.blobs[blob_digest(data)] = data
        return blob_digest(data)

    async def _store(self, stream: str, seq: int, event: Event) -> str:
        return seal(
            stream=stream,
            seq=seq,
            key=event.key(),
            type=event.type,
            schema=event.SCHEMA,
            actor=actor_of(stream),
            body=event.body(),
            prev_hash=self.hashes[stream][-1] if seq else GENESIS,
            time="2026-01-31T12:00:00.000000Z",
        ).hash

    def record(self, run: str) -> RunRecord:
        """What an auditor reads."""
        builder = RecordBuilder(run)
        for stream, events in self.events.items():
            builder.add(stream, events, self.hashes[stream])
        wanted = {digest for events in self.events.values() for event in events for digest in documents_of(event)}
        named = builder.named_blobs()
        return builder.build(
            named_blobs=named,
            blob_faults={digest: f"blob {digest} is not stored" for digest in named if digest not in self.blobs},
            documents={digest: self.blobs[digest] for digest in wanted if digest in self.blobs},
        )


class LedgerBook(Book):
    """The real ledger and blob store."""

    def __init__(self, ledger: Ledger, put: Callable[[bytes], Any], lie: Lie = truth) -> None:
        super().__init__(lie)
        self._ledger = ledger
        self._put = put

    async def put(self, data: bytes) -> str:
        return (await self._put(data)).digest

    async def _store(self, stream: str, seq: int, event: Event) -> str:
        return (await self._ledger.append(stream, [event], expected_seq=seq, actor=actor_of(stream))).hash


def actor_of(stream: str) -> str:
    """Who appends to a stream."""
    return f"{OWNERS[stream.partition('/')[0]]}:test/1"


async def write_run(book: Book, run: str, *, steps: int = STEPS, finish: bool = True, prompts: int = PROMPTS) -> None:
    """A whole run: a validation of version 0, then `steps` steps of `prompts` prompts with three rollouts each, of
    which the last one of prompt 1 fails; the last version is validated too."""
    recipe = {"run": {"max_staleness": 0}}
    book.run = run
    task_set = await book.put(canonical_json({"run": run}))
    await book.append(run_stream(run), RunCreated(recipe=recipe, recipe_digest="d", task_set=task_set))
    await _version_0(book, run)
    await book.append(engine_stream(run, ENGINE), EngineStarted(engine=ENGINE, backend="test", worker="w"))
    await _attest(book, run, 0)
    await _validate(book, run, 0)
    for step in range(steps):
        await _train(book, run, step, prompts)
        await _attest(book, run, step + 1)
    if finish:
        await _validate(book, run, steps)
        await book.append(run_stream(run), RunFinished(end=RunEnd.MAX_STEPS, version=steps))


async def _version_0(book: Book, run: str) -> None:
    export = await _export(book, run, 0)
    created = VersionCreated(
        origin="warm-up",
        digests=digests(0),
        export=export,
        probe_ids=[1, 2],
        probe=[-1.0],
        metrics={},
        environment={},
        duration_s=1.0,
    )
    await book.append(weights_stream(run), created)


async def _export(book: Book, run: str, version: int) -> str:
    weights = await book.put(f"weights of {run} at {version}".encode())
    return await book.put(canonical_json({"model.safetensors": weights}))


def digests(version: int) -> WeightDigests:
    """Digests of a version."""
    return WeightDigests(master=f"m{version}", exported=f"x{version}", optimiser=f"o{version}")


async def _attest(book: Book, run: str, version: int) -> None:
    attested = VersionAttested(
        version=version, digest=digests(version).exported, probe_difference=0.0, load=version, load_s=0.5
    )
    await book.append(engine_stream(run, ENGINE), attested)


async def _group(book: Book, run: str, scope: str, prompt: int, version: int, task: str, good: Fate) -> None:
    stream = prompt_stream(run, scope, prompt)
    await book.append(stream, GroupOpened(task=task, task_id="t", version=version, samples=SAMPLES))
    for sample in range(SAMPLES):
        fails = good is Fate.TRAINED and prompt == 1 and sample == SAMPLES - 1
        await _rollout(book, run, scope, prompt, sample, version, fails)
    names = [rollout_stream(run, scope, prompt, sample) for sample in range(SAMPLES)]
    children = [book.head(name) for name in names if name in book.events]
    graded = [next((e for e in book.events.get(name, []) if isinstance(e, RolloutGraded)), None) for name in names]
    closed = GroupClosed(
        fate=good,
        scores=[event.score if event else None for event in graded],
        children=children,
        rollout_facts=facts_of_children(children),
    )
    await book.append(stream, closed)


async def _rollout(book: Book, run: str, scope: str, prompt: int, sample: int, version: int, fails: bool) -> None:
    stream = rollout_stream(run, scope, prompt, sample)
    payload = await book.put(canonical_json({"tokens": [1, 2, sample]}))
    turn = TurnRecorded(
        turn=0,
        epoch=0,
        payload=payload,
        version=version,
        prompt_tokens=10,
        generated_tokens=5,
        tool="edit",
        tree=TREE,
        engine=ENGINE,
        generate_s=0.1,
        tool_s=0.1,
    )
    await book.append(stream, AttemptOpened(attempt="a", worker="w", resumed_at=0), turn)
    if fails:
        await book.append(stream, RolloutFailed(failure="infra", cause="the host went away"))
        return
    key = f"{run}-{scope}-{prompt}-{sample}"
    ended = RolloutEnded(
        reason=StopReason.FINISHED,
        epoch=0,
        turns=1,
        generated_tokens=5,
        total_tokens=15,
        content=f"content of {stream}",
        changed=await book.put(b"{}"),
        tree=TREE,
        verdict_key=key,
    )
    await book.append(stream, ended)
    score = float(sample == 0)
    report = await book.put(canonical_json({"score": score}))
    verdict = VerdictReached(
        task="t", tree=TREE, grader="g", score=score, timed_out=False, report=report, duration_s=0.1
    )
    await book.append(verdict_stream(key), verdict)
    head = book.head(verdict_stream(key)).head
    graded = RolloutGraded(verdict_key=key, score=score, timed_out=False, verdict_head=head, reused=False)
    await book.append(stream, graded)


async def _commit(book: Book, names: Sequence[str]) -> Commitment:
    children = [book.head(name) for name in names if name in book.events]
    heads = await book.put(commitment_blob(children))
    return Commitment(count=len(children), heads=heads, facts=facts_of_children(children))


async def _train(book: Book, run: str, step: int, prompts: int) -> None:
    tasks = [await book.put(f"task {step}/{prompt}".encode()) for prompt in range(prompts)]
    await book.append(run_stream(run), StepDispatched(step=step, version=step, tasks=tasks))
    for prompt, task in enumerate(tasks):
        await _group(book, run, str(step), prompt, step, task, Fate.TRAINED)
    manifest = build_manifest(
        step=step,
        parent_version=step,
        temperature=1.0,
        rollouts=[_facts(book, run, step, prompt, s) for prompt in range(prompts) for s in range(SAMPLES)],
        grpo=GrpoConfig(),
        packing=PackingConfig(),
    )
    batch = await book.put(manifest.canonical_bytes())
    commitment = await _commit(book, [prompt_stream(run, str(step), prompt) for prompt in range(prompts)])
    rewards = [sample.reward for sample in manifest.samples if sample.reward is not None]
    admitted = StepAdmitted(
        step=step,
        manifest=batch,
        group_facts=commitment.facts,
        group_heads=commitment,
        rollouts=len(manifest.samples),
        masked=sum(sample.mask is not None for sample in manifest.samples),
        reward_mean=sum(rewards) / len(rewards),
    )
    await book.append(run_stream(run), admitted)
    trained = StepTrained(
        step=step,
        parent=step,
        version=step + 1,
        manifest=batch,
        digests=digests(step + 1),
        export=await _export(book, run, step + 1),
        probe=[-1.0],
        metrics={},
        timings_s={},
        environment={},
        duration_s=1.0,
    )
    await book.append(weights_stream(run), trained)
    head = book.head(weights_stream(run))
    completed = StepCompleted(
        step=step,
        version=step + 1,
        weights_digest=digests(step + 1).exported,
        weights_seq=head.seq,
        weights_head=head.head,
    )
    await book.append(run_stream(run), completed)


def _facts(book: Book, run: str, step: int, prompt: int, sample: int) -> RolloutFacts:
    stream = rollout_stream(run, str(step), prompt, sample)
    events = book.events.get(stream, [])
    ended = next((event for event in events if isinstance(event, RolloutEnded)), None)
    graded = next((event for event in events if isinstance(event, RolloutGraded)), None)
    return RolloutFacts(
        stream=stream,
        prompt=prompt,
        sample=sample,
        turns=1 if graded else 0,
        tokens=15 if graded else 0,
        generated_tokens=5 if graded else 0,
        content=ended.content if ended and graded else "",
        reward=graded.score if graded else None,
        mask=None if graded else MaskReason.INFRA,
    )


async def _validate(book: Book, run: str, version: int) -> None:
    stream, scope = validation_stream(run, version, "main"), validation_scope(version, "main")
    tasks = [await book.put(b"validation task 0"), await book.put(b"validation task 1")]
    opened = ValidationOpened(
        version=version, weights_digest=digests(version).exported, dataset="main", tasks=tasks, samples=SAMPLES
    )
    await book.append(stream, opened)
    for prompt, task in enumerate(tasks):
        await _group(book, run, scope, prompt, version, task, Fate.VALIDATED)
    commitment = await _commit(book, [prompt_stream(run, scope, prompt) for prompt in range(len(tasks))])
    closed = ValidationClosed(
        passed=[1, 1],
        graded=[SAMPLES, SAMPLES],
        pass_1=(1 / SAMPLES + 1 / SAMPLES) / 2,
        pass_k=1.0,
        k=SAMPLES,
        children_facts=commitment.facts,
        children_heads=commitment,
    )
    await book.append(stream, closed)
    head = book.head(stream)
    recorded = ValidationRecorded(
        version=version,
        dataset="main",
        pass_1=closed.pass_1,
        pass_k=closed.pass_k,
        k=SAMPLES,
        stream_head=head.head,
        validation_facts=head.facts,
    )
    await book.append(run_stream(run), recorded)
