"""Puts our own scorers to the known cases of a review, where it was they that scored."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from stepwell.ptb.benchmarks import BENCHMARKS
from stepwell.ptb.review import ReviewRecord, SetupRecord
from stepwell.ptb.review.own_scorers import our_known_cases
from stepwell.ptb.review.setup_record import ConformanceCase
from stepwell.ptb.review.subject import subject_of
from stepwell.sandbox.bubblewrap import BubblewrapFactory


def with_our_scorers(record: ReviewRecord) -> ReviewRecord:
    """The record with what our scorers say of the known cases of every benchmark that they, in this version, scored.

    Raises:
        SandboxError: programs cannot be run here.
    """
    setups = list(record.setups)
    subject = subject_of(record)
    for key, basis in subject.bases.items():
        ours = [name for name, of in basis.scorers.items() if name in BENCHMARKS and BENCHMARKS[name].scorer == of]
        told = subject.setups[key].conformance or ()
        if ours:
            setups.append(SetupRecord(basis=key, conformance=(*told, *asyncio.run(_cases(ours)))))
    return record.model_copy(update={"setups": tuple(setups)})


async def _cases(benchmarks: Sequence[str]) -> tuple[ConformanceCase, ...]:
    with tempfile.TemporaryDirectory(prefix="stepwell-review-") as folder:
        factory = BubblewrapFactory(Path(folder))
        try:
            return await our_known_cases(benchmarks, factory)
        finally:
            await factory.close()
