"""take_submission: what the agent left, by digest, and its model stored."""

import asyncio
from pathlib import Path

from temporalio import activity

from activities.trial_folders import TrialFolders
from activities.trial_streams import TrialStreams
from stepwell.contracts.trial import TrialRef
from stepwell.events import SubmissionTaken
from stepwell.ptb.trials.manifest import (
    NoSubmission,
    entries_of,
    manifest_blob,
    manifest_digest,
    manifest_of,
    submitted_files,
)


class TrialSubmissionActivities:
    """Takes what agents left on this host."""

    def __init__(self, streams: TrialStreams, folders: TrialFolders) -> None:
        self._streams = streams
        self._folders = folders

    @activity.defn(name="take_submission")
    async def take_submission(self, request: TrialRef) -> TrialRef:
        """Names everything in the work folder by its digest, and stores the submitted model's files."""
        fold = await self._streams.fold(request.run_set, request.cell)
        if fold.submission is not None:
            return request
        folder = self._folders.prepared(request.run_set, request.cell, fold.epoch)
        attempt = await self._streams.take(request.run_set, request.cell, fold)
        everything = await asyncio.to_thread(manifest_of, folder.work)
        failure, files = "", dict[str, Path]()
        try:
            files = await asyncio.to_thread(submitted_files, folder.work)
        except NoSubmission as error:
            failure = str(error)
        model = await asyncio.to_thread(entries_of, files)
        for path in files.values():
            await self._streams.stores.blobs.put_file(path)
        inline: list[bytes] = []
        stage = self._streams.stores.stage
        taken = SubmissionTaken(
            epoch=fold.epoch,
            weights_digest="" if failure else manifest_digest(model),
            failure=failure,
            model="" if failure else await stage(manifest_blob(model), inline),
            manifest=await stage(manifest_blob(everything), inline),
        )
        await attempt.append(taken, blobs=inline)
        return request
