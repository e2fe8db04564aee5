"""A made-up run set, told as its activities tell it: a reference, an honest agent whose host was lost once, one that
is flagged. Whatever a lie changes stands in a ledger whose hashes fit."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

from stepwell.events import (
    AgentEnded,
    AgentRestarted,
    AgentStarted,
    AttemptOpened,
    CheckReached,
    EnvironmentTested,
    JudgementReached,
    PassScored,
    RunSetCreated,
    RunSetFinished,
    SubmissionEvaluated,
    SubmissionTaken,
    TrialCreated,
    TrialOverridden,
    TrialPrepared,
    TrialScored,
)
from stepwell.events.base import Event
from stepwell.events.canonical import canonical_json, digest_of_json
from stepwell.events.children import Commitment, commitment_blob, facts_of_children
from stepwell.events.streams import override_stream, run_set_stream, trial_stream
from stepwell.ptb.evaluation import EvaluationResult
from stepwell.ptb.evaluation.result import SubmissionFacts, UsedSampling
from stepwell.ptb.judges import Judged, JudgeVerdict, Vote
from stepwell.ptb.judges.question import QUESTION_VERSION
from stepwell.ptb.seeds import sample_seed
from stepwell.ptb.trials import TrialCell
from stepwell.ptb.trials.audited import RunSetRecord
from stepwell.ptb.trials.fold import fold_trial
from stepwell.ptb.trials.manifest import Entry, manifest_blob, manifest_digest
from stepwell.ptb.trials.results import record_of
from stepwell.ptb.trials.verification import RunSetVerification, verify_run_set
from tests.audited_recipe import (
    BASIS,
    CLEAN,
    DATA,
    DIGESTS,
    HONEST,
    IDENTICAL,
    JUDGE,
    LEAKER,
    MODEL,
    PROMPT,
    RECIPE,
    REGIME,
    scored_pass,
    weights_of,
)
from tests.book import Book, Lie, MemoryBook, truth


@dataclass
class Told:
    """Writes a run set to a book.

    Args:
        book: Streams and blobs.
        name: Of the run set.
        files: Digests by name of what is evaluated in the place of what agents submitted.
    """

    book: Book
    name: str
    files: Mapping[str, str] | None = None

    async def whole(self) -> None:
        """All of it."""
        created = RunSetCreated(
            recipe=json.loads(RECIPE.model_dump_json()),
            recipe_digest=RECIPE.digest,
            cells=[cell.name for cell in RECIPE.cells()],
            basis=BASIS.model_dump(mode="json"),
            digests=DIGESTS,
        )
        await self.book.append(run_set_stream(self.name), created)
        for cell in RECIPE.cells():
            await self.trial(cell)
        override = TrialOverridden(
            number=0,
            of=(await self._report("identity"))[0],
            about="identity",
            violation=False,
            reason="I compared its weights by hand",
            by="ada",
        )
        await self.book.append(override_stream(self.name, LEAKER), override)
        children = [self.book.head(trial_stream(self.name, cell)) for cell in created.cells]
        heads = await self.book.put(commitment_blob(children))
        commitment = Commitment(count=len(children), heads=heads, facts=facts_of_children(children))
        await self.book.append(run_set_stream(self.name), RunSetFinished(scored=len(children), heads=commitment))

    async def trial(self, cell: TrialCell) -> None:
        """One trial."""
        stream = trial_stream(self.name, cell.name)
        created = TrialCreated(
            cell=cell.name,
            recipe_digest=RECIPE.digest,
            role=cell.role,
            agent=cell.agent,
            base_model=cell.base_model,
            benchmark=cell.benchmark,
            repetition=cell.repetition,
            seed=cell.seed(RECIPE.seed),
        )
        await self.book.append(stream, created)
        files = {
            "config.json": await self.book.put(b"{}"),
            "model.safetensors": await self.book.put(weights_of(self.name, cell.name)),
        }
        if cell.role == "agent":
            await self._agent(stream, cell, files)
        await self._evaluation(stream, files if cell.role != "agent" or self.files is None else self.files)
        record = record_of(self.name, RECIPE, BASIS.key, fold_trial(self.book.events[stream]))
        await self.book.append(stream, TrialScored(record=record.model_dump(mode="json")))

    async def _agent(self, stream: str, cell: TrialCell, files: Mapping[str, str]) -> None:
        put = self.book.put
        prepared = TrialPrepared(
            workspace="w",
            files=await put(b'{"evaluate.py":"e"}'),
            prompt=await put(PROMPT.encode()),
            prompt_digest=digest_of_json(["prompt", PROMPT]),
            statements=[],
        )
        await self._attempt(stream)
        await self.book.append(stream, prepared)
        starts = 2 if cell.name == HONEST else 1
        for epoch in range(starts):
            tested = EnvironmentTested(epoch=epoch, host=f"host-{epoch}", version="1", report=await put(b"ok"))
            await self.book.append(stream, tested, AgentStarted(epoch=epoch, host=f"host-{epoch}", folder="/f"))
            if epoch < starts - 1:
                await self.book.append(stream, AgentRestarted(epoch=epoch + 1, host="host-0", cause="it lost power"))
        epoch = starts - 1
        ended = AgentEnded(
            epoch=epoch,
            ended="time",
            exit_status=-15,
            prompts=1,
            limit="",
            secrets=[],
            tokens=None,
            money=None,
            worked_s=7203.5,
            trace=await put(b"2026-11-30T09:00:00.000000Z out hello\n"),
            events=await put(b"{}\n"),
            traffic="",
        )
        model = tuple(Entry(path=name, kind="file", size=2, content=content) for name, content in sorted(files.items()))
        work = tuple(each.model_copy(update={"path": f"final_model/{each.path}"}) for each in model)
        taken = SubmissionTaken(
            epoch=epoch,
            weights_digest=manifest_digest(model),
            failure="",
            model=await put(manifest_blob(model)),
            manifest=await put(manifest_blob(work)),
        )
        await self.book.append(stream, ended, taken)
        for check in ("identity", "contamination"):
            await self.book.append(stream, await self._check(check, epoch))
        await self.book.append(stream, await self._judgement(cell, epoch))

    async def _check(self, check: str, epoch: int) -> CheckReached:
        report, verdict, passed = await self._report(check)
        return CheckReached.model_validate(
            {
                "epoch": epoch,
                "check": check,
                "version": RECIPE.checks.versions[("identity", "contamination").index(check)],
                "verdict": verdict,
                "passed": passed,
                "reason": "as it says",
                "report": report,
            }
        )

    async def _report(self, check: str) -> tuple[str, str, bool]:
        report = IDENTICAL if check == "identity" else CLEAN
        blob = json.dumps(asdict(report), sort_keys=True, indent=1).encode()
        return await self.book.put(blob), report.verdict.value, report.passed

    async def _judgement(self, cell: TrialCell, epoch: int) -> JudgementReached:
        messages = [{"role": "user", "content": f"What of {cell.name}?"}]
        asked = digest_of_json([QUESTION_VERSION, [[each["role"], each["content"]] for each in messages]])
        none = JudgeVerdict(charge="lookup", violation=False, justification="no", citations=[], certainty="high")
        seed = sample_seed(cell.seed(RECIPE.seed), "judges")
        seeds = [sample_seed(seed, "lookup", epoch=number) for number in range(3)]
        votes = tuple(Vote(judge=JUDGE, seed=each, verdict=none) for each in seeds)
        judged = Judged(charge="lookup", question=asked, votes=votes)
        return JudgementReached(
            epoch=epoch,
            charge="lookup",
            outcome=judged.outcome,
            judged=judged.digest,
            votes=await self.book.put(judged.model_dump_json().encode()),
            question=await self.book.put(canonical_json(messages)),
        )

    async def _evaluation(self, stream: str, files: Mapping[str, str]) -> None:
        await self._attempt(stream)
        passes = [scored_pass(seed, (1.0, float(number % 2))) for number, seed in enumerate(REGIME.seeds)]
        facts = SubmissionFacts(
            kind="model",
            digest=digest_of_json(dict(files)),
            files=dict(files),
            ignored={},
            notes=(),
            sampling=UsedSampling(temperature=1.0, top_p=1.0, greedy=False),
            stop=("<|im_end|>",),
        )
        result = EvaluationResult(
            base_model=MODEL,
            benchmark="gsm8k",
            rows=2,
            data=DATA,
            submission=facts,
            max_tokens=REGIME.max_tokens["gsm8k"][0],
            passes=tuple(passes),
        )
        for one in passes:
            scored = PassScored(
                max_tokens=REGIME.max_tokens["gsm8k"][0],
                seed=one.seed,
                points=one.points,
                unscored=one.unscored,
                answers=await self.book.put(one.model_dump_json().encode()),
            )
            await self.book.append(stream, scored)
        bare = result.model_copy(update={"passes": tuple(one.model_copy(update={"items": ()}) for one in passes)})
        evaluated = SubmissionEvaluated(
            failure="",
            max_tokens=result.max_tokens,
            died=0,
            digest=result.digest,
            report=await self.book.put(bare.model_dump_json().encode()),
        )
        await self.book.append(stream, evaluated)

    async def _attempt(self, stream: str) -> None:
        at = len(self.book.events[stream])
        await self.book.append(stream, AttemptOpened(attempt=f"{stream}/{at}", worker="trial:test/1", resumed_at=at))


def of_trial(cell: str, kind: type[Event], **changes: object) -> Callable[[str, Event], Event | None]:
    """A lie about a trial's events of a type; without changes they are lost."""

    def lie(stream: str, event: Event) -> Event | None:
        if not isinstance(event, kind) or stream.rpartition("/")[2] != cell:
            return event
        return event.model_copy(update=changes) if changes else None

    return lie


async def told(lie: Lie = truth, files: Mapping[str, str] | None = None) -> MemoryBook:
    """The run set `s`, with a lie in it; `files` as of `Told`."""
    book = MemoryBook(lie=lie)
    await Told(book, "s", files).whole()
    return book


def audited(book: MemoryBook) -> RunSetVerification:
    """What an auditor says of it."""
    return verify_run_set(RunSetRecord(book.record("s"), regime_here=REGIME))


def failing(verification: RunSetVerification) -> dict[str, str]:
    """First finding of each rule that fails."""
    return {result.rule: str(result.findings[0]) for result in verification.results if result.findings}


def at(cell: str) -> str:
    """A trial's stream."""
    return trial_stream("s", cell)
