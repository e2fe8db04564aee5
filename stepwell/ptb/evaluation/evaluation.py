"""Evaluates a submission over one benchmark: looked at, asked in a sandbox, scored outside of it.

What dies with this process is the process inside alone; the answers that it gave are kept, and the next call with the
same order and folder goes on after them. The bits of the result are the same as if nothing had happened.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from stepwell.ptb.benchmarks import Benchmark, benchmark
from stepwell.ptb.chat import ChatTemplate, template_of
from stepwell.ptb.evaluation.inside_process import Died, InsideProcess, NoAnswers
from stepwell.ptb.evaluation.order import EvaluationOrder
from stepwell.ptb.evaluation.passes import Answering, Pass, Progress, end_of_turn, passes_of, score_pass
from stepwell.ptb.evaluation.remembered_judge import RememberedJudge
from stepwell.ptb.evaluation.result import EvaluationResult, FailedAttempt, SubmissionFacts
from stepwell.ptb.evaluation.small_files import Refused
from stepwell.ptb.evaluation.submission import CONFIG, Submission, accept, config_bytes
from stepwell.ptb.evaluation.versions import data_of, identity_of
from stepwell.ptb.evaluation.whole_model import UnusableBase, merge_adapter
from stepwell.ptb.evaluation.wire import Setup
from stepwell.ptb.evaluation.work_folder import WorkFolder
from stepwell.ptb.judging import Judge
from stepwell.ptb.scorers import Means
from stepwell.ptb.scorers.programs.score import ProgramScorer
from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.sandbox.folders import sweep


class EvaluationBroke(Exception):
    """There is no result, and that is not known to be the submission's doing: look at the machine, and ask again."""


def _unheard(progress: Progress) -> None:
    del progress


async def evaluate_submission(
    order: EvaluationOrder,
    work: Path,
    judge: Judge | None = None,
    *,
    heard: Callable[[Progress], None] = _unheard,
) -> EvaluationResult:
    """Evaluates, or goes on with an evaluation that was broken off.

    Args:
        order: What and how.
        work: Folder of this evaluation alone; made if missing. Its judgements, answers and result stay.
        judge: Of answers, for benchmarks that need one. What it said before is not asked again; None: nothing is asked.
        heard: Is told how far it is, every few seconds.

    Raises:
        EvaluationBroke: the submission's evaluation dies, and the base model's too, or there is no base to tell.
        UnusableBase: the base model's folder is needed and cannot be used.
        OtherEvaluation, EvaluationUnderWay: the folder is another's.
        BrokenRows, BrokenTests, NoTemplate, ValueError: there are no questions, or nothing to score answers with.
        SandboxError: there can be no sandbox here.
        BrokenRecord: the folder's judgements are another judge's.
    """
    declared, template = benchmark(order.benchmark), template_of(order.base_model)
    passes = await asyncio.to_thread(passes_of, order, declared, template)
    refusal: str | None = None
    submission: Submission | None = None
    try:
        submission = await asyncio.to_thread(accept, order.model, order.links)
        submitted = {"model": submission.facts.digest}
        if submission.facts.kind == "adapter":
            submitted["base"] = (await asyncio.to_thread(_base, order)).facts.digest
    except Refused as error:
        refusal, submitted = str(error), {"refused": str(error)}
    with WorkFolder(work) as folder:
        version = None if declared.needs != "judge" else _judged(judge, work).version
        folder.claim(identity_of(order, submitted, version))
        known = folder.result()
        if known is not None:
            return known
        if submission is None:
            result = _result(order, None, None, failure=refusal)
        else:
            result = await _Evaluation(order, declared, template, passes, folder, heard).run(submission, judge)
        folder.keep_result(result)
        return result


def _judged(judge: Judge | None, work: Path) -> RememberedJudge:
    return RememberedJudge(judge, work / "judgements.jsonl")


def _base(order: EvaluationOrder) -> Submission:
    if order.base is None:
        raise UnusableBase("the folder of the base model is needed, and the order names none")
    try:
        return accept(order.base, "anywhere")
    except Refused as error:
        raise UnusableBase(f"the base model's folder {order.base} cannot be used: {error}") from error


def _result(
    order: EvaluationOrder, facts: SubmissionFacts | None, max_tokens: int | None, *, failure: str | None = None
) -> EvaluationResult:
    return EvaluationResult(
        base_model=order.base_model,
        benchmark=order.benchmark,
        rows=order.rows,
        data=data_of(order.files, order.rows),
        submission=facts,
        max_tokens=max_tokens,
        failure=failure,
    )


class _Evaluation:
    """One evaluation of a submission that was accepted."""

    def __init__(
        self,
        order: EvaluationOrder,
        declared: Benchmark,
        template: ChatTemplate,
        passes: Sequence[Pass],
        folder: WorkFolder,
        heard: Callable[[Progress], None],
    ) -> None:
        self._order = order
        self._declared = declared
        self._end_of_turn = end_of_turn(template)
        self._passes = passes
        self._folder = folder
        self._heard = heard

    async def run(self, submission: Submission, judge: Judge | None) -> EvaluationResult:
        """All of it. Raises as `evaluate_submission`."""
        try:
            whole = await asyncio.to_thread(self._whole, submission)
        except Refused as error:
            return _result(self._order, submission.facts, None, failure=str(error))
        facts = submission.facts.model_copy(update={"sampling": whole.facts.sampling, "stop": whole.facts.stop})
        try:
            answered = await self._answered(whole)
        except NoAnswers as error:
            await self._blame(whole, str(error), certain=True)
            return self._with_died(_result(self._order, facts, None, failure=str(error)))
        if answered is None:
            why = f"the evaluation died under every limit of tokens; the last time: {self._folder.died()[-1].why}"
            return self._with_died(_result(self._order, facts, None, failure=why))
        async with self._means(judge) as means:
            scored = [await score_pass(one, answered.of_pass(one.seed), means) for one in self._passes]
        result = _result(self._order, facts, answered.max_tokens)
        return self._with_died(
            result.model_copy(update={"passes": tuple(scored), "environment": self._folder.environment()})
        )

    def _with_died(self, result: EvaluationResult) -> EvaluationResult:
        return result.model_copy(update={"died": self._folder.died()})

    def _whole(self, submission: Submission) -> Submission:
        """The submission as a whole model."""
        if submission.facts.kind == "model":
            return submission
        assert self._order.base is not None
        merged = self._folder.folder / "merged"
        if not merged.exists():
            merge_adapter(submission, self._order.base, merged)
        return accept(merged)

    async def _answered(self, whole: Submission) -> Answering | None:
        """Answers to all questions; none if it always died, and the base model does better."""
        for max_tokens in self._order.max_tokens:
            answering = Answering(self._passes, self._folder, max_tokens, self._order.engine.at_once)
            died = sum(one.max_tokens == max_tokens for one in self._folder.died())
            for _ in range(max(self._order.limits.tries - died, 0)):
                if await self._attempt(whole, answering):
                    return answering
            if not answering.missing:
                return answering
        await self._blame(whole, self._folder.died()[-1].why, certain=False)
        # Once more, now that the machine is known to be well: what killed the others may have been its doing.
        last = Answering(self._passes, self._folder, self._order.max_tokens[-1], self._order.engine.at_once)
        return last if await self._attempt(whole, last) else None

    async def _attempt(self, whole: Submission, answering: Answering) -> bool:
        """Gets the answers that are missing; false if it died on the way, which is kept.

        Raises:
            NoAnswers, SandboxError: see there.
        """
        if not answering.missing:
            return True
        try:
            async with asyncio.timeout(self._order.limits.attempt_s), self._process(whole) as process:
                self._folder.keep_environment(process.environment)
                await answering.fill(process, self._heard)
            return True
        except Died as error:
            why = str(error)
        except TimeoutError:
            why = f"it was not done after {self._order.limits.attempt_s:g} s"
        self._folder.keep_died(FailedAttempt(max_tokens=answering.max_tokens, why=why))
        return False

    async def _blame(self, whole: Submission, why: str, *, certain: bool) -> None:
        """Finds out whether the base model does better; returns if the submission is at fault.

        Raises:
            EvaluationBroke: the base does no better, or there is none, and the submission said nothing itself.
        """
        if self._order.base is None:
            if certain:
                return
            raise EvaluationBroke(
                f"{why}; whether the model or the machine is at fault shows the base model: name its folder"
            )
        base = await asyncio.to_thread(_base, self._order)
        if base.facts.digest == whole.facts.digest:
            raise EvaluationBroke(f"the base model itself cannot be evaluated here: {why}")
        first = self._passes[0].questions(self._order.max_tokens[-1])[: self._order.engine.at_once]
        try:
            async with asyncio.timeout(self._order.limits.attempt_s), self._process(base) as process:
                await process.ask(first)
        except (Died, NoAnswers, TimeoutError) as error:
            raise EvaluationBroke(
                f"{why}; and the base model cannot be evaluated here either: {error or 'it took too long'}"
            ) from error

    def _process(self, model: Submission) -> InsideProcess:
        config = self._folder.folder / f"config-{model.facts.digest[:16]}.json"
        config.write_bytes(config_bytes(model))
        sampling = model.facts.sampling
        setup = Setup(
            engine=self._order.engine,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            stop_ids=model.stops.ids,
            stop_texts=model.stops.texts,
            end_of_turn=self._end_of_turn,
        )
        inside = {**model.files, CONFIG: config}
        return InsideProcess(inside, self._folder.folder / "system", setup, self._order.limits)

    @asynccontextmanager
    async def _means(self, judge: Judge | None) -> AsyncGenerator[Means]:
        """What scores the answers, for the block."""
        match self._declared.needs:
            case "nothing":
                yield Means()
            case "judge":
                yield Means(judge=_judged(judge, self._folder.folder))
            case "sandbox":
                root = self._folder.folder / "sandboxes"
                sweep(root)  # of an evaluation that was killed
                factory = BubblewrapFactory(root)
                try:
                    yield Means(programs=ProgramScorer(factory))
                finally:
                    await factory.close()
