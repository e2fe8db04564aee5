"""What becomes of a step's rollouts where its batch is computed otherwise: which advantages change, and how."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stepwell.events.streams import parse_rollout_stream
from stepwell.rl.batching import BatchManifest, ManifestSample

NOT_THERE = "not in the batch"
"""In the place of a mask, of a rollout whose group is not trained."""


@dataclass(frozen=True)
class AdvantageChange:
    """A rollout that is trained otherwise."""

    stream: str
    """Its stream."""
    advantage: float
    """As it was; 0 for a masked one."""
    other: float
    """As it is computed otherwise."""
    mask: str | None
    """Why it was masked, `NOT_THERE`, or None."""
    other_mask: str | None
    """The same of the other batch."""

    @property
    def place(self) -> str:
        """Step, prompt and sample, as `stepwell audit explain` takes them."""
        name = parse_rollout_stream(self.stream)
        return f"rollout/{name.scope}/{name.prompt}/{name.sample}"

    @property
    def flips(self) -> bool:
        """Whether what was made likelier would be made less likely, or the reverse."""
        return self.advantage * self.other < 0

    @property
    def is_masked(self) -> bool:
        """Whether it would take no part any more."""
        return self.mask is None and self.other_mask is not None

    @property
    def is_unmasked(self) -> bool:
        """Whether it would take part now."""
        return self.mask is not None and self.other_mask is None

    @property
    def vanishes(self) -> bool:
        """Whether it would have no effect any more, though it takes part."""
        return self.mask is self.other_mask is None and self.advantage != 0.0 == self.other

    @property
    def appears(self) -> bool:
        """Whether it would have an effect, where it took part without."""
        return self.mask is self.other_mask is None and self.advantage == 0.0 != self.other

    @property
    def difference(self) -> float:
        """Of the advantages, without sign."""
        return abs(self.other - self.advantage)

    def words(self) -> str:
        """As a line."""
        return f"{self.place}: {_said(self.advantage, self.mask)} → {_said(self.other, self.other_mask)}"

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "rollout": self.place,
            "stream": self.stream,
            "advantage": self.advantage,
            "mask": self.mask,
            "other_advantage": self.other,
            "other_mask": self.other_mask,
        }


@dataclass(frozen=True)
class StepChange:
    """A step that is computed otherwise."""

    step: int
    """Which."""
    rollouts: int
    """Rollouts of both batches together."""
    changes: tuple[AdvantageChange, ...]
    """Those that differ: changes of sign first, then the largest differences."""

    @property
    def flipped(self) -> int:
        """Advantages that change their sign."""
        return sum(change.flips for change in self.changes)

    @property
    def mean_difference(self) -> float:
        """Mean |difference| of all its advantages; 0 of none."""
        return sum(change.difference for change in self.changes) / self.rollouts if self.rollouts else 0.0

    def counts(self) -> dict[str, int]:
        """Rollouts by what would become of them."""
        return {
            "changed": len(self.changes),
            "sign_changes": self.flipped,
            "to_zero": sum(change.vanishes for change in self.changes),
            "from_zero": sum(change.appears for change in self.changes),
            "masked": sum(change.is_masked for change in self.changes),
            "unmasked": sum(change.is_unmasked for change in self.changes),
        }

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "step": self.step,
            "rollouts": self.rollouts,
            **self.counts(),
            "mean_difference": self.mean_difference,
            "changes": [change.as_json() for change in self.changes],
        }


def compare_batches(batch: BatchManifest, other: BatchManifest) -> StepChange:
    """What differs between two batches of one step."""
    ours, theirs = _by_stream(batch), _by_stream(other)
    streams = sorted({*ours, *theirs})
    changes = [change for stream in streams if (change := _change(stream, ours.get(stream), theirs.get(stream)))]
    ordered = sorted(changes, key=lambda change: (not change.flips, -change.difference, change.stream))
    return StepChange(batch.step, len(streams), tuple(ordered))


def largest(steps: Sequence[StepChange], count: int) -> list[AdvantageChange]:
    """The changes to look at first: of sign, then the largest."""
    changes = [change for step in steps for change in step.changes]
    return sorted(changes, key=lambda change: (not change.flips, -change.difference, change.stream))[:count]


def _by_stream(batch: BatchManifest) -> Mapping[str, ManifestSample]:
    return {sample.stream: sample for sample in batch.samples}


def _change(stream: str, ours: ManifestSample | None, theirs: ManifestSample | None) -> AdvantageChange | None:
    before, after = _state(ours), _state(theirs)
    return None if before == after else AdvantageChange(stream, before[0], after[0], before[1], after[1])


def _state(sample: ManifestSample | None) -> tuple[float, str | None]:
    if sample is None:
        return 0.0, NOT_THERE
    return sample.advantage, sample.mask.value if sample.mask else None


def _said(advantage: float, mask: str | None) -> str:
    if mask == NOT_THERE:
        return mask
    return f"masked ({mask})" if mask else f"{advantage:+.3f}"
