"""A small run with every commitment right: plain, or with all that can happen to one."""

from collections.abc import Sequence

from stepwell.events import (
    EngineStarted,
    HeadSigned,
    HoldRaised,
    KeyDeclared,
    OperatorActed,
    PromptReplaced,
    RolloutCleared,
    RolloutEnded,
    RolloutFailed,
    RolloutGraded,
    RolloutTainted,
    RowsRecorded,
    RunCreated,
    RunFinished,
    StallBegan,
    StallEnded,
    StepAdmitted,
    StepCompleted,
    StepDispatched,
    StepTrained,
    UsageRecorded,
    ValidationClosed,
    ValidationOpened,
    ValidationRecorded,
    VersionAttested,
    VersionCreated,
)
from stepwell.events.canonical import canonical_json
from stepwell.events.children import Commitment, commitment_blob, facts_of_children
from stepwell.events.group_closed import Fate
from stepwell.events.head_signed import StreamHead
from stepwell.events.numbers import WeightDigests
from stepwell.events.run_finished import RunEnd
from stepwell.events.streams import (
    engine_stream,
    health_stream,
    operator_stream,
    prompt_stream,
    quarantine_stream,
    rollout_stream,
    run_stream,
    seal_stream,
    validation_scope,
    validation_stream,
    weights_stream,
)
from stepwell.rl.batching import BatchManifest, build_manifest
from stepwell.rl.config import GrpoConfig, PackingConfig
from stepwell.rl.outcomes import rollout_facts
from stepwell.rl.schedule import generation_version
from stepwell.signing import SigningKey, head_message
from stepwell.tasks.manifest import TaskEntry, TaskManifest
from tests.audited_group import write_group
from tests.book import Book
from tests.run_plan import PROMPTS, SAMPLES, Plan
from tests.told import told

ENGINE = "e1"
TREE = "7" * 64
KEY = SigningKey.of(bytes(range(32)))


async def write_run(book: Book, run: str, plan: Plan = Plan()) -> None:  # noqa: B008  # it is frozen
    """A whole run: a validation of version 0, then steps of two prompts with three rollouts each, of which the last one
    of prompt 1 fails; the last version is validated too."""
    book.run = run
    await _Writer(book, run, plan).write()


def digests(version: int) -> WeightDigests:
    """Digests of a version."""
    return WeightDigests(master=f"m{version}", exported=f"x{version}", optimiser=f"o{version}")


def _counts(manifest: BatchManifest) -> dict[str, float]:
    """What a trainer counts of a batch in which no row is masked by the step itself."""
    rows = [row for row in manifest.rows() if row.tokens and row.generated_tokens]
    return {
        "tokens": sum(row.tokens for row in rows),
        "generated_tokens": sum(row.generated_tokens for row in rows),
        "loss_tokens": sum(row.generated_tokens for row in rows if row.mask is None),
    }


class _Writer:
    def __init__(self, book: Book, run: str, plan: Plan) -> None:
        self._book, self._run, self._plan = book, run, plan
        self._run_stream, self._operators = run_stream(run), operator_stream(run)
        self._settings: dict[str, float | int] = {}
        self._acts = self._loads = 0

    async def write(self) -> None:
        """All of it."""
        book, plan = self._book, self._plan
        await self._create()
        if plan.signed:
            await book.append(seal_stream(self._run), KeyDeclared(public_key=KEY.public))
        await book.append(weights_stream(self._run), await self._version_0())
        await book.append(engine_stream(self._run, ENGINE), told(EngineStarted, engine=ENGINE))
        await self._attest(0)
        await book.append(
            health_stream(self._run), told(StallBegan), told(StallEnded), told(UsageRecorded, generated_tokens=0)
        )
        if not plan.afterwards:
            await self._validate(0)
        for step in range(plan.steps):
            if not await self._step(step):
                await book.append(self._run_stream, told(RunFinished, end=RunEnd.STOPPED, version=step))
                return
            await self._attest(step + 1)
        await book.append(health_stream(self._run), told(UsageRecorded, number=1, hours=1.0, generated_tokens=60))
        if plan.finish:
            for version in reversed(range(plan.steps + 1)) if plan.afterwards else [plan.steps]:
                await self._validate(version)
            await self._ask("end")
            await book.append(self._run_stream, told(RunFinished, version=plan.steps))
        for place in plan.tainted:
            await book.append(
                quarantine_stream(self._run), told(RolloutTainted, rollout=f"rollout/{self._run}/{place}")
            )
        if plan.tainted:
            last = f"rollout/{self._run}/{plan.tainted[-1]}"
            await book.append(quarantine_stream(self._run), told(RolloutCleared, rollout=last))
            await self._sign("finished")

    async def _create(self) -> None:
        plan = self._plan
        sections = {"max_steps": plan.steps, "prompts_per_step": PROMPTS, "samples_per_prompt": SAMPLES}
        reserve = plan.recipe.get("failures", {}).get("reserve", 0)
        manifest = TaskManifest(
            train=await self._tasks("train", plan.steps * PROMPTS),
            reserve=await self._tasks("reserve", reserve),
            main=await self._tasks("main", 2),
            confirm=(),
            heldout=(),
        )
        self._manifest = manifest
        recipe = {"run": sections, **plan.recipe}
        created = told(RunCreated, recipe=recipe, task_set=await self._book.put(manifest.blob()))
        await self._book.append(self._run_stream, created)

    async def _tasks(self, kind: str, count: int) -> tuple[TaskEntry, ...]:
        names = [f"{kind} task {number}" for number in range(count)]
        return tuple([TaskEntry(id=name, blob=await self._book.put(name.encode())) for name in names])

    async def _version_0(self) -> VersionCreated:
        return told(VersionCreated, digests=digests(0), export=await self._export(0))

    async def _export(self, version: int) -> str:
        weights = await self._book.put(f"weights of {self._run} at {version}".encode())
        return await self._book.put(canonical_json({"model.safetensors": weights}))

    async def _act(self, action: str, **arguments: str | float) -> None:
        self._acts += 1
        act = told(OperatorActed, action=action, arguments=arguments, update=f"u{self._acts}")
        await self._book.append(self._operators, act)

    async def _ask(self, before: str) -> None:
        for gate in self._plan.asked.get(before, ()):
            await self._book.append(self._operators, told(HoldRaised, hold=gate))
            await self._act("approve", gate=gate)

    async def _attest(self, version: int) -> None:
        await self._ask(f"version {version}")
        attested = told(VersionAttested, version=version, digest=digests(version).exported, load=self._loads)
        self._loads += 1
        await self._book.append(engine_stream(self._run, ENGINE), attested)

    async def _step(self, step: int) -> bool:
        """One step; False if it is stopped."""
        book, plan = self._book, self._plan
        await self._ask(f"step {step}")
        for key, value in plan.settings.get(step, {}).items():
            await self._act("set", key=key, value=value)
            self._settings[key] = value
        version = generation_version(step, int(self._settings.get("run.max_staleness", 0)))
        tasks = [entry.blob for entry in self._manifest.step(step, PROMPTS)]
        dispatched = told(StepDispatched, step=step, version=version, tasks=tasks, settings=dict(self._settings))
        await book.append(self._run_stream, dispatched)
        if step == plan.stopped_in:
            await self._act("stop", at="now")
        replaced = sorted((at, of) for at, of in plan.replaced.items() if at[0] == step)
        for prompt in range(PROMPTS):
            await self._group(str(step), prompt, version, tasks[prompt], self._fate(step, prompt))
        for number, ((_, prompt), failed) in enumerate(replaced):
            task = self._manifest.reserve[number].blob
            await book.append(self._run_stream, PromptReplaced(step=step, prompt=prompt, replaces=failed, task=task))
            await self._group(str(step), prompt, version, task, self._fate(step, prompt))
        if step == plan.stopped_in:
            return False
        await self._admit(step, PROMPTS + len(replaced))
        return True

    def _fate(self, step: int, prompt: int) -> Fate:
        if (step, prompt) in self._plan.skipped or step == self._plan.stopped_in:
            return Fate.SKIPPED
        return Fate.QUARANTINED if (step, prompt) in self._plan.quarantined else Fate.TRAINED

    async def _group(self, scope: str, prompt: int, version: int, task: str, fate: Fate) -> None:
        is_skipped = scope.isdigit() and (int(scope), prompt) in self._plan.skipped
        if is_skipped:
            await self._act("skip", step=int(scope), prompt=prompt)
        plan = self._plan
        await write_group(
            self._book, scope, prompt, version=version, task=task, fate=fate, rows=plan.rows, all_end=plan.all_end
        )

    async def _commit(self, names: Sequence[str]) -> Commitment:
        children = [self._book.head(name) for name in names if name in self._book.events]
        heads = await self._book.put(commitment_blob(children))
        return Commitment(count=len(children), heads=heads, facts=facts_of_children(children))

    def _manifest_of(self, step: int, prompts: int) -> BatchManifest:
        book, trained = self._book, [p for p in range(prompts) if self._fate(step, p) is Fate.TRAINED]
        names = [rollout_stream(self._run, str(step), prompt, s) for prompt in trained for s in range(SAMPLES)]
        facts = [
            rollout_facts(
                name,
                book.first(name, RolloutEnded),
                book.first(name, RolloutGraded),
                book.first(name, RolloutFailed),
                rows=book.first(name, RowsRecorded),
                overlong_filtering=self._plan.recipe.get("rl", {}).get("overlong_filtering", True),
            )
            for name in names
        ]
        return build_manifest(
            step=step,
            parent_version=step,
            temperature=1.0,
            rollouts=facts,
            grpo=GrpoConfig(),
            packing=PackingConfig(),
        )

    async def _admit(self, step: int, prompts: int) -> None:
        """Admits, trains and completes a step."""
        book = self._book
        await self._ask(f"admission {step}")
        manifest = self._manifest_of(step, prompts)
        batch = await book.put(manifest.canonical_bytes())
        commitment = await self._commit([prompt_stream(self._run, str(step), prompt) for prompt in range(prompts)])
        rewards = [sample.reward for sample in manifest.samples if sample.reward is not None]
        admitted = told(
            StepAdmitted,
            step=step,
            manifest=batch,
            group_facts=commitment.facts,
            group_heads=commitment,
            rollouts=len(manifest.samples),
            masked=sum(sample.mask is not None for sample in manifest.samples),
            reward_mean=sum(rewards) / len(rewards),
        )
        await book.append(self._run_stream, admitted)
        trained = told(
            StepTrained,
            step=step,
            parent=step,
            version=step + 1,
            manifest=batch,
            digests=digests(step + 1),
            export=await self._export(step + 1),
            metrics={"grad_norm": 2.0 if step == 1 else 1.0, **_counts(manifest)},
        )
        await book.append(weights_stream(self._run), trained)
        head = book.head(weights_stream(self._run))
        completed = told(
            StepCompleted,
            step=step,
            version=step + 1,
            weights_digest=digests(step + 1).exported,
            weights_seq=head.seq,
            weights_head=head.head,
        )
        await book.append(self._run_stream, completed)
        await self._sign(str(step))

    async def _sign(self, at: str) -> None:
        """Signs the heads as they are, by `KEY`."""
        if not self._plan.signed:
            return
        book, stream = self._book, seal_stream(self._run)
        names = (self._run_stream, self._operators, health_stream(self._run), weights_stream(self._run))
        every = sorted({*names, engine_stream(self._run, ENGINE)} & book.events.keys())
        heads = [StreamHead(stream=name, seq=book.head(name).seq, head=book.head(name).head) for name in every]
        signed = [event for event in book.events[stream] if isinstance(event, HeadSigned)]
        before = signed[-1].signature if signed else ""
        signature = KEY.sign(head_message(stream, at, heads, before))
        await book.append(stream, HeadSigned(at=at, heads=heads, before=before, signature=signature))

    async def _validate(self, version: int) -> None:
        book = self._book
        await self._ask(f"validation {version}")
        stream, scope = validation_stream(self._run, version, "main"), validation_scope(version, "main")
        tasks = [entry.blob for entry in self._manifest.main]
        opened = told(
            ValidationOpened, version=version, weights_digest=digests(version).exported, tasks=tasks, samples=SAMPLES
        )
        await book.append(stream, opened)
        for prompt, task in enumerate(tasks):
            await self._group(scope, prompt, version, task, Fate.VALIDATED)
        commitment = await self._commit([prompt_stream(self._run, scope, prompt) for prompt in range(len(tasks))])
        closed = told(
            ValidationClosed,
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
        recorded = told(
            ValidationRecorded,
            version=version,
            pass_1=closed.pass_1,
            pass_k=closed.pass_k,
            k=SAMPLES,
            stream_head=head.head,
            validation_facts=head.facts,
        )
        await book.append(self._run_stream, recorded)
