"""A made-up run set, told as its activities tell it: a reference, an honest agent whose host was lost once, one that
is flagged. Whatever a lie changes stands in a ledger whose hashes fit."""

import json
from collections.abc import Callable, Mapping, Sequence
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
from stepwell.ptb.contamination.report import Report
from stepwell.ptb.evaluation import Answer, EvaluationResult, ItemOutcome, PassResult
from stepwell.ptb.evaluation.result import SubmissionFacts, UsedSampling
from stepwell.ptb.identity.report import IdentityReport
from stepwell.ptb.judges import Judged, JudgeVerdict, Vote
from stepwell.ptb.judges.question import QUESTION_VERSION
from stepwell.ptb.judging.openai_judge import JudgeSettings
from stepwell.ptb.leaderboard.records import Basis
from stepwell.ptb.regimes import regime
from stepwell.ptb.seeds import sample_seed
from stepwell.ptb.trials import RunSetRecipe, TrialCell
from stepwell.ptb.trials.fold import fold_trial
from stepwell.ptb.trials.manifest import Entry, manifest_blob, manifest_digest
from stepwell.ptb.trials.results import record_of
from tests.book import Book

MODEL = "Qwen/Qwen3-1.7B-Base"
REGIME = regime("v1.2")
RECIPE = RunSetRecipe.model_validate(
    {
        "name": "small",
        "regime": "v1.2",
        "files": "/files.toml",
        "hours": 2.0,
        "base_models": [MODEL],
        "benchmarks": ["gsm8k"],
        "reference_models": [MODEL],
        "reference_benchmarks": ["gsm8k"],
        "models": {MODEL: {"base": "/base"}},
        "agents": [
            {"name": name, "scaffold": "shell", "model": "none", "command": ["true"]} for name in ("honest", "leaker")
        ],
        "judges": {"address": "http://127.0.0.1:1/v1", "model": "j", "charges": ["lookup"]},
    }
)
JUDGE = JudgeSettings("http://127.0.0.1:1/v1", "j").version
DATA = "digest-of-gsm8k"
BASIS = Basis(
    regime="v1.2",
    rules="v1.1",
    hours=2,
    gpus=0,
    base_models=(MODEL,),
    weights={"gsm8k": 1.0},
    seeds=REGIME.seeds,
    data={"gsm8k": DATA},
    scorers={"gsm8k": "number-1"},
    templates={MODEL: "template"},
    environment="here",
    checks=(*RECIPE.checks.versions, f"lookup by {JUDGE}"),
)
DIGESTS = {f"base/{MODEL}": "b", "benchmark/gsm8k": DATA, "regime": digest_of_json(REGIME.model_dump(mode="json"))}
BASE, HONEST, LEAKER = (cell.name for cell in RECIPE.cells())
PROMPT = "Post-train it."
IDENTICAL = IdentityReport(differences=(), tensors=(), unread=(), missing=(), unread_share=0.0)
"""Nothing was compared: its verdict is that nothing can be said."""
CLEAN = Report(
    leaks=(),
    scanned_files=1,
    scanned_rows=7,
    scanned_words=99,
    unscanned=(),
    items=2,
    unindexed=(),
    embedded=0,
    not_embedded=0,
)
Worths = Sequence[float | None]


@dataclass
class Told:
    """Writes a run set to a book.

    Args:
        book: Streams and blobs.
        name: Of the run set.
        files: Changes what is evaluated in the place of a submission's files, by a lie.
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
            "model.safetensors": await self.book.put(cell.name.encode()),
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


def weights_of(run_set: str, cell: str) -> bytes:
    """What stands for a trial's weights."""
    return f"{run_set} {cell}".encode()


def scored_pass(seed: int, worths: Worths) -> PassResult:
    """A pass whose answers were worth this."""
    known = [worth for worth in worths if worth is not None]
    points, unknown = 100 * sum(known) / len(worths), len(worths) - len(known)
    items = tuple(
        ItemOutcome(
            item=f"gsm8k/{number}",
            seed=sample_seed(seed, f"gsm8k/{number}"),
            answer=Answer(text="ANSWER: 1", end="stop", prompt_tokens=9, tokens=3),
            value=worth,
            why="as it says",
            weight=1.0,
        )
        for number, worth in enumerate(worths)
    )
    high = points + 100 * unknown / len(worths)
    return PassResult(
        seed=seed,
        points=None if unknown else points,
        low=points,
        high=high,
        unscored=unknown,
        disagreeing=0,
        items=items,
    )


def of_trial(cell: str, kind: type[Event], **changes: object) -> Callable[[str, Event], Event | None]:
    """A lie about a trial's events of a type; without changes they are lost."""

    def lie(stream: str, event: Event) -> Event | None:
        if not isinstance(event, kind) or stream.rpartition("/")[2] != cell:
            return event
        return event.model_copy(update=changes) if changes else None

    return lie
