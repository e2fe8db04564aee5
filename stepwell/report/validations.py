"""What is known of one validation, with the uncertainty of its scores."""

from dataclasses import dataclass

from stepwell.events import ValidationClosed
from stepwell.rl.passk import Estimate, bootstrap_mean, wilson


@dataclass
class ValidationPicture:
    """One version on one set; None where its event has not been seen yet."""

    version: int
    """Weight version."""
    dataset: str
    """`main`, `confirm`, `heldout`."""
    tasks: int | None = None
    """Tasks of the set."""
    samples: int | None = None
    """Rollouts a task."""
    opened_s: float | None = None
    """When it began, in seconds since the epoch."""
    recorded_s: float | None = None
    """When the run learned its result."""
    pass_1: float | None = None
    """Mean over tasks of the share of samples that pass."""
    pass_k: float | None = None
    """Share of tasks that any sample passes."""
    k: int | None = None
    """Samples a task."""
    pass_1_interval: Estimate | None = None
    """95 % interval: percentile bootstrap over tasks."""
    pass_k_interval: Estimate | None = None
    """95 % interval: Wilson's for a proportion of tasks."""

    @property
    def done(self) -> bool:
        """Whether its result is known."""
        return self.pass_k is not None and self.recorded_s is not None

    def closed(self, event: ValidationClosed) -> None:
        """Its counts, from which the intervals follow."""
        graded = [(passed, of) for passed, of in zip(event.passed, event.graded, strict=True) if of]
        self.tasks = len(event.graded)
        self.pass_1, self.pass_k, self.k = event.pass_1, event.pass_k, event.k
        if graded:
            self.pass_1_interval = bootstrap_mean([passed / of for passed, of in graded], seed=0)
            self.pass_k_interval = wilson(sum(passed > 0 for passed, _ in graded), len(graded))
