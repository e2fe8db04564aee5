"""score_submission: the final evaluation, on whichever host, of what the ledger names."""

import asyncio
from contextlib import nullcontext
from pathlib import Path

from temporalio import activity

from activities.trial_judging import judge_of
from activities.trial_streams import RunSetFacts, TrialStreams
from db.blobs import BlobStore
from stepwell.contracts.trial import TrialRef
from stepwell.events import PassScored, SubmissionEvaluated
from stepwell.events.canonical import digest_of_json
from stepwell.ptb.benchmarks import benchmark
from stepwell.ptb.evaluation import EvaluationOrder, EvaluationResult
from stepwell.ptb.evaluation.evaluation import evaluate_submission
from stepwell.ptb.evaluation.versions import data_of
from stepwell.ptb.trials.files import benchmark_files, folders_of
from stepwell.ptb.trials.fold import TrialFold
from stepwell.ptb.trials.loading import regime_of
from stepwell.ptb.trials.manifest import read_manifest
from stepwell.sandbox.folders import remove_tree


class TrialEvaluationActivities:
    """Evaluates submissions and references.

    Args:
        streams: Of the ledger.
        root: Folder that outlives the worker: an evaluation that was broken off goes on from it.
    """

    def __init__(self, streams: TrialStreams, root: Path) -> None:
        self._streams = streams
        self._root = root

    @activity.defn(name="score_submission")
    async def score_submission(self, request: TrialRef) -> TrialRef:
        """Evaluates a trial's model, and records each pass. Without a model there is nothing to do.

        Raises:
            OtherFiles: the benchmark's files or the regime are others than when the run set began.
            EvaluationBroke, UnusableBase, SandboxError: infrastructure.
        """
        fold = await self._streams.fold(request.run_set, request.cell)
        work = self._root / request.run_set / request.cell
        if _has_no_model(fold) or fold.evaluated is not None:
            await asyncio.to_thread(remove_tree, work)  # an attempt may have died between its append and this
            return request
        facts = await self._streams.run_set(request.run_set)
        attempt = await self._streams.take(request.run_set, request.cell, fold)
        model = await self._model(facts, fold, work / "submission")
        order = order_of(facts, fold, model)
        section = facts.recipe.judges if benchmark(order.benchmark).needs == "judge" else None
        async with nullcontext(None) if section is None else judge_of(section) as judge:
            result = await evaluate_submission(order, work / "evaluation", judge)
        stage, inline = self._streams.stores.stage, list[bytes]()
        scored = [
            PassScored(
                max_tokens=result.max_tokens or 0,
                seed=one.seed,
                points=one.points,
                unscored=one.unscored,
                answers=await stage(one.model_dump_json().encode(), inline),
            )
            for one in result.passes
        ]
        ended = SubmissionEvaluated(
            failure=result.failure or "",
            max_tokens=result.max_tokens,
            died=len(result.died),
            digest=result.digest,
            report=await stage(_without_items(result), inline),
        )
        await attempt.append(*scored, ended, blobs=inline)
        await asyncio.to_thread(remove_tree, work)
        return request

    async def _model(self, facts: RunSetFacts, fold: TrialFold, folder: Path) -> Path:
        """The folder that is evaluated: a reference's own, or the submission out of the store."""
        base, instruct = folders_of(facts.recipe, fold.created.base_model)
        if fold.created.role == "base":
            return base
        if fold.created.role == "instruct":
            assert instruct is not None  # the recipe was refused otherwise
            return instruct
        assert fold.submission is not None
        await fetch_model(self._streams.stores.blobs, fold.submission.model, folder)
        return folder


async def fetch_model(blobs: BlobStore, manifest: str, folder: Path) -> None:
    """Puts a submitted model where it was not, out of the store.

    Args:
        blobs: The store.
        manifest: Blob: its files.
        folder: Made anew.

    Raises:
        BlobMissing, BlobCorrupt: a file is not stored as it was.
    """
    await asyncio.to_thread(remove_tree, folder)
    folder.mkdir(parents=True)
    for entry in read_manifest(await blobs.get(manifest)):
        path = folder / entry.path
        path.parent.mkdir(parents=True, exist_ok=True)
        await blobs.get_to_file(entry.content, path)


def order_of(facts: RunSetFacts, fold: TrialFold, model: Path) -> EvaluationOrder:
    """What is to be evaluated, and how.

    Raises:
        OtherFiles: the benchmark's files or the regime are others than when the run set began.
    """
    recipe, name = facts.recipe, fold.created.benchmark
    rules, files = regime_of(recipe), benchmark_files(recipe, name)
    facts.require("regime", digest_of_json(rules.model_dump(mode="json")))
    facts.require(f"benchmark/{name}", data_of(files.paths, files.rows))
    judged = benchmark(name).needs == "judge"
    return EvaluationOrder(
        model=model,
        base_model=fold.created.base_model,
        base=folders_of(recipe, fold.created.base_model)[0],
        benchmark=name,
        files=dict(files.paths),
        rows=files.rows,
        seeds=rules.seeds_of(name, fold.created.seed, judged=judged),
        max_tokens=rules.max_tokens[name],
        engine=recipe.evaluation.engine,
        limits=recipe.evaluation.limits,
    )


def _has_no_model(fold: TrialFold) -> bool:
    """Whether there is nothing to evaluate, or a secret has failed the trial."""
    if fold.created.role != "agent":
        return False
    assert fold.ended is not None  # the workflow asks in order
    assert fold.submission is not None
    return bool(fold.submission.failure or fold.ended.secrets)


def _without_items(result: EvaluationResult) -> bytes:
    """The items of each pass are blobs of their own."""
    bare = [one.model_copy(update={"items": ()}) for one in result.passes]
    return result.model_copy(update={"passes": tuple(bare)}).model_dump_json().encode()
