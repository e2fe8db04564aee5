"""What is known of one validation, with the uncertainty of its scores."""

from dataclasses import dataclass

from stepwell.events import ValidationClosed
from stepwell.rl.passk import Estimate, pass_rates


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
    pass_all: float | None = None
    """pass^k: share of tasks that every sample passes."""
    k: int | None = None
    """Samples a task."""
    pass_1_interval: Estimate | None = None
    """95 % interval: percentile bootstrap over tasks."""
    pass_k_interval: Estimate | None = None
    """95 % interval: Wilson's for a proportion of tasks."""
    pass_all_interval: Estimate | None = None
    """The same."""

    @property
    def done(self) -> bool:
        """Whether its result is known."""
        return self.pass_k is not None and self.recorded_s is not None

    def closed(self, event: ValidationClosed) -> None:
        """Its counts, from which the intervals follow."""
        self.tasks = len(event.graded)
        self.pass_1, self.pass_k, self.k = event.pass_1, event.pass_k, event.k
        rates = pass_rates(event.passed, event.graded)
        if rates is not None:
            self.pass_all = rates.pass_all.value
            self.pass_1_interval, self.pass_k_interval = rates.pass_1, rates.pass_k
            self.pass_all_interval = rates.pass_all
