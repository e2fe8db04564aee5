"""check_submission: the checks that are programs, on the agent's host."""

import asyncio
import json
from dataclasses import asdict
from typing import Literal

from temporalio import activity

from activities.stores import dump_json
from activities.trial_folders import TrialFolder, TrialFolders
from activities.trial_streams import RunSetFacts, TrialStreams
from stepwell.contracts.trial import CheckRequest, TrialRef
from stepwell.events import CheckReached
from stepwell.ptb.contamination import Check, check_folder, load_benchmark
from stepwell.ptb.contamination.embedding import SentenceEmbedder, minilm_folder
from stepwell.ptb.contamination.paraphrases import ParaphraseSearch
from stepwell.ptb.identity import UnreadableModel, check_identity
from stepwell.ptb.identity.tensors import ModelFolder
from stepwell.ptb.trials.files import benchmark_files, folders_of
from stepwell.ptb.trials.fold import TrialFold
from stepwell.ptb.trials.manifest import MODEL_FOLDER
from stepwell.ptb.trials.workspace import GIVEN

DOWNLOADS = ("home/.cache/huggingface/*",)
"""A library fetches a data set whole, its test half too, whoever asks for its training half: what lies there was
fetched, and not necessarily trained on. It is passed over and counted; what it was used for, the judges read in the
trace."""
SHOWN = 3
"""Leaks that a flag's reason names."""


class TrialCheckActivities:
    """Checks what agents left on this host."""

    def __init__(self, streams: TrialStreams, folders: TrialFolders) -> None:
        self._streams = streams
        self._folders = folders

    @activity.defn(name="check_submission")
    async def check_submission(self, request: CheckRequest) -> TrialRef:
        """Puts a submission to one check. Without a model there is nothing to check, and no verdict."""
        ref = TrialRef(run_set=request.run_set, cell=request.cell)
        fold = await self._streams.fold(request.run_set, request.cell)
        assert fold.submission is not None  # the workflow asks in order
        if fold.submission.failure or any(each.check == request.check for each in fold.checks):
            return ref
        facts = await self._streams.run_set(request.run_set)
        folder = self._folders.prepared(request.run_set, request.cell, fold.epoch)
        attempt = await self._streams.take(request.run_set, request.cell, fold)
        look = _identity if request.check == "identity" else _contamination
        reached, report = await asyncio.to_thread(look, facts, fold, folder)
        inline: list[bytes] = []
        named = await self._streams.stores.stage(report, inline)
        await attempt.append(reached.model_copy(update={"report": named}), blobs=inline)
        return ref


def _identity(facts: RunSetFacts, fold: TrialFold, folder: TrialFolder) -> tuple[CheckReached, bytes]:
    """Raises UnreadableModel where one of our own models cannot be read: that is no fault of the submission."""
    base, instruct = folders_of(facts.recipe, fold.created.base_model)
    version = facts.recipe.checks.versions[0]
    for ours in (base, instruct):
        if ours is not None:
            ModelFolder(ours)
    try:
        report = check_identity(folder.work / MODEL_FOLDER, base, instruct)
    except UnreadableModel as error:
        unread = _reached(fold, "identity", version, "unreadable", passed=False, reason=str(error))
        return unread, dump_json({"unreadable": str(error)})
    reached = _reached(
        fold, "identity", version, report.verdict.value, passed=report.passed, reason=f"made of: {report.verdict.value}"
    )
    found = {**asdict(report), "layers": [asdict(line) for line in report.layers()]}
    return reached, json.dumps(found, sort_keys=True, indent=1).encode()


def _contamination(facts: RunSetFacts, fold: TrialFold, folder: TrialFolder) -> tuple[CheckReached, bytes]:
    recipe = facts.recipe
    benchmark = load_benchmark([benchmark_files(recipe, fold.created.benchmark).paths["test"]])
    search = None
    if recipe.checks.paraphrases:
        search = ParaphraseSearch(benchmark, SentenceEmbedder(minilm_folder()))
    passed_over = (*(f"task/{name}" for name in GIVEN), *DOWNLOADS)
    check = Check(exclude=passed_over, allowed=recipe.checks.allowed_leaks)
    report = check_folder(folder.tree, benchmark, check, search)
    named = "; ".join(f"{leak.path} row {leak.row} holds {leak.item} ({leak.kind})" for leak in report.leaks[:SHOWN])
    reason = f"{report.verdict.value}: {len(report.leaks)} rows, {report.scanned_rows} scanned"
    reached = _reached(
        fold,
        "contamination",
        recipe.checks.versions[1],
        report.verdict.value,
        passed=report.passed,
        reason=f"{reason}; {named}" if named else reason,
    )
    return reached, json.dumps(asdict(report), sort_keys=True, indent=1).encode()


def _reached(
    fold: TrialFold,
    check: Literal["identity", "contamination"],
    version: str,
    verdict: str,
    *,
    passed: bool,
    reason: str,
) -> CheckReached:
    return CheckReached(
        epoch=fold.epoch, check=check, version=version, verdict=verdict, passed=passed, reason=reason, report=""
    )
