"""How long the reference implementation took, by phase.

Computed from the 18 published logs of reference convergence points (mlcommons/training, llm_post_training/rcp_logs: six
seeds at each of three batch sizes, on 64 nodes of 4 GB300). Each run ended at its first scheduled evaluation. Of steps,
the mean over a run of what its `tracked_stats` say (training and exposed generation from the second step on: the first
has no generation to wait for and compiles). The opening is the time from `run_start` to the first step, in which the
first rollouts are made.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Seconds:
    """Of six seeds, in seconds."""

    low: float
    mean: float
    high: float


@dataclass(frozen=True)
class ReferenceTimes:
    """Times at one batch size."""

    opening: Seconds
    """Before the first step, once."""
    step: Seconds
    """A step, all of it."""
    generation: Seconds
    """Of a step: generation that training waited for."""
    training: Seconds
    """Of a step: forward and backward passes, and the optimiser."""
    sync: Seconds
    """Of a step: new weights to the engines."""
    validation: Seconds
    """One evaluation, of 1,024 rollouts then."""
    run: Seconds
    """The whole run, `run_start` to `run_stop`."""

    @property
    def other(self) -> float:
        """Of a step, in the mean: what is neither generation, training nor sync; log-probabilities above all."""
        return self.step.mean - self.generation.mean - self.training.mean - self.sync.mean

    def expected_run_s(self, steps: int) -> float:
        """The opening, so many steps, and one validation."""
        return self.opening.mean + steps * self.step.mean + self.validation.mean


TIMES: Mapping[int, ReferenceTimes] = {
    256: ReferenceTimes(
        opening=Seconds(383.4, 463.6, 620.2),
        step=Seconds(396.2, 424.4, 465.9),
        generation=Seconds(284.6, 315.5, 359.1),
        training=Seconds(67.2, 69.1, 70.1),
        sync=Seconds(15.1, 15.3, 15.6),
        validation=Seconds(994.0, 1079.8, 1234.1),
        run=Seconds(9090.4, 9668.6, 10254.4),
    ),
    512: ReferenceTimes(
        opening=Seconds(662.5, 700.2, 765.5),
        step=Seconds(565.9, 608.3, 650.9),
        generation=Seconds(391.0, 435.3, 486.8),
        training=Seconds(125.5, 127.8, 130.5),
        sync=Seconds(14.5, 16.0, 22.0),
        validation=Seconds(965.5, 1065.0, 1229.3),
        run=Seconds(7938.7, 8376.9, 8641.1),
    ),
    1024: ReferenceTimes(
        opening=Seconds(966.8, 1092.4, 1446.6),
        step=Seconds(844.1, 931.4, 966.7),
        generation=Seconds(538.9, 645.8, 694.1),
        training=Seconds(239.3, 243.0, 245.4),
        sync=Seconds(14.4, 15.7, 19.9),
        validation=Seconds(988.2, 1170.3, 1378.6),
        run=Seconds(8348.1, 9022.7, 9903.2),
    ),
}
"""By batch size, in rollouts."""
