"""Forged tasks under the real grader, in real sandboxes."""

from pathlib import Path

import pytest

from stepwell.sandbox.bubblewrap import BubblewrapFactory
from stepwell.tasks.forge import forged_task
from stepwell.tasks.grading.grade import grade
from stepwell.tasks.grading.verdict import Score
from stepwell.tasks.task import Split


@pytest.mark.parametrize(
    ("split", "index"), [("train", 5), ("train", 900), ("validation", 33), ("confirm", 51), ("heldout_family", 4)]
)
async def test_the_reference_solution_passes_and_the_defect_does_not(tmp_path: Path, split: Split, index: int):
    task = forged_task(1, split, index)
    factory = BubblewrapFactory(tmp_path)
    try:
        untouched = await grade(task, {}, factory)
        repaired = await grade(task, {path: text.encode() for path, text in task.gold.items()}, factory)
    finally:
        await factory.close()
    assert isinstance(untouched, Score)
    assert isinstance(repaired, Score)
    assert (untouched.value, repaired.value) == (0.0, 1.0)
    assert list(untouched.outcomes.values()).count("failed") >= 2
