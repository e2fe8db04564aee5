"""From a recipe's tasks to the tasks themselves."""

from stepwell.tasks.forge import ForgeCounts, TaskSet, forge

FORGED_TRAIN = 2560
"""Training tasks forged, whatever the curriculum takes of them: the warm-up demonstrates on them all."""


def forged_tasks(seed: int, *, main: int, confirm: int, heldout: int) -> TaskSet:
    """The forged task set of a run."""
    return forge(seed, ForgeCounts(train=FORGED_TRAIN, validation=main, confirm=confirm, heldout_family=heldout))
