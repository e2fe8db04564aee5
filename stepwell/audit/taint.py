"""What is not to be trusted: rollouts that somebody marked, and all that came of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from stepwell.audit.record import RunRecord
from stepwell.events import RolloutCleared, RolloutTainted, StepTrained, VersionCreated
from stepwell.events.base import Event
from stepwell.events.group_closed import Fate
from stepwell.events.streams import parse_rollout_stream, prompt_stream, quarantine_stream


class Part(StrEnum):
    """What part a marked rollout had in training."""

    TRAINED = "trained"
    """It is in the batch of its step; one that was masked there too, since the mask follows from what it did."""
    WAITING = "waiting"
    """Its group, or its step, is not closed."""
    LEFT_OUT = "left out"
    """Its group was not trained."""
    VALIDATION = "validation"
    """It counts in a validation, and trained nothing."""


@dataclass(frozen=True)
class Mark:
    """A rollout that is marked."""

    rollout: str
    """Name of its stream."""
    number: int
    """Which of its marks."""
    seq: int
    """Place of its `RolloutTainted` in the stream of the quarantine."""
    who: str
    """User and host."""
    reason: str
    """As given."""


@dataclass(frozen=True)
class Taint:
    """All of a run that is not to be trusted."""

    marks: tuple[Mark, ...]
    """Rollouts that are marked, by name."""
    parts: Mapping[str, Part]
    """What part each had, by its stream."""
    first_version: int | None
    """First version that was trained on one, or will be; it and all later ones are tainted. None: no version is."""
    newest_version: int
    """Newest that there is, -1 before the first."""

    @property
    def versions(self) -> range:
        """Tainted versions that there are."""
        return range(
            self.newest_version + 1 if self.first_version is None else self.first_version, self.newest_version + 1
        )

    @property
    def last_clean_version(self) -> int:
        """Newest version that no marked rollout had a part in: what to fork from."""
        return self.newest_version if self.first_version is None else min(self.first_version - 1, self.newest_version)

    def words(self) -> str:
        """All of it in a sentence; empty where nothing is marked."""
        if not self.marks:
            return ""
        count = f"{len(self.marks)} rollout{'s are' if len(self.marks) > 1 else ' is'} marked as tainted"
        if not self.versions:
            return f"{count}; no weight version was trained on {'them' if len(self.marks) > 1 else 'it'}"
        first, last = self.versions[0], self.versions[-1]
        versions = f"version {first} is" if first == last else f"versions {first} to {last} are"
        return f"{count}, so {versions}; the last clean version is {self.last_clean_version}"

    def as_json(self) -> dict[str, object]:
        """For programs."""
        return {
            "marks": [
                {
                    "rollout": mark.rollout,
                    "part": self.parts[mark.rollout].value,
                    "who": mark.who,
                    "reason": mark.reason,
                    "seq": mark.seq,
                }
                for mark in self.marks
            ],
            "tainted_versions": list(self.versions),
            "last_clean_version": self.last_clean_version,
        }


def standing_marks(events: Iterable[tuple[int, Event]]) -> dict[str, Mark]:
    """Rollouts that are marked, by their streams, from the places and events of `quarantine/<run>`."""
    standing: dict[str, Mark] = {}
    for seq, event in events:
        if isinstance(event, RolloutTainted):
            standing[event.rollout] = Mark(event.rollout, event.number, seq, event.who, event.reason)
        elif isinstance(event, RolloutCleared):
            standing.pop(event.rollout, None)
    return standing


def marking(events: Sequence[tuple[int, Event]], rollouts: Iterable[str], who: str, reason: str) -> list[Event]:
    """What is to be appended to `quarantine/<run>` so that rollouts are marked; nothing for those that are.

    Args:
        events: What stands there, with its places.
        rollouts: Streams.
        who: User and host.
        reason: Why.
    """
    standing = standing_marks(events)
    before = [event.rollout for _, event in events if isinstance(event, RolloutTainted)]
    return [
        RolloutTainted(rollout=rollout, number=before.count(rollout), who=who, reason=reason)
        for rollout in dict.fromkeys(rollouts)
        if rollout not in standing
    ]


def clearing(events: Sequence[tuple[int, Event]], rollouts: Iterable[str], who: str, reason: str) -> list[Event]:
    """What is to be appended so that rollouts are marked no more. Arguments as of `marking`."""
    standing = standing_marks(events)
    return [
        RolloutCleared(rollout=rollout, number=standing[rollout].number, who=who, reason=reason)
        for rollout in dict.fromkeys(rollouts)
        if rollout in standing
    ]


def taint_of_record(record: RunRecord) -> Taint:
    """What of a run is tainted, from all that an audit read of it."""
    stream = record.streams.get(quarantine_stream(record.run))
    marks = standing_marks(stream.events if stream else ())
    made = [event.version for _, event in record.weights.every(StepTrained)] if record.weights else []
    newest = max(made, default=0 if record.weights and record.weights.first(VersionCreated) else -1)

    def is_trained(rollout: str) -> bool | None:
        name = parse_rollout_stream(rollout)
        closed = record.closing(prompt_stream(record.run, name.scope, name.prompt))
        return None if closed is None else closed.fate is Fate.TRAINED

    return taint_of(marks, newest, is_trained)


def taint_of(marks: Mapping[str, Mark], newest_version: int, is_trained: Callable[[str], bool | None]) -> Taint:
    """All that is tainted.

    Args:
        marks: As `standing_marks` gives them.
        newest_version: Newest weight version of the run, -1 if there is none.
        is_trained: Whether the group of a rollout of training is trained; None while that is open.
    """
    parts = {name: _part(name, is_trained) for name in sorted(marks)}
    firsts = [
        int(parse_rollout_stream(name).scope) + 1
        for name, part in parts.items()
        if part in (Part.TRAINED, Part.WAITING)
    ]
    return Taint(
        marks=tuple(marks[name] for name in sorted(marks)),
        parts=parts,
        first_version=min(firsts, default=None),
        newest_version=newest_version,
    )


def _part(rollout: str, is_trained: Callable[[str], bool | None]) -> Part:
    if not parse_rollout_stream(rollout).scope.isdigit():
        return Part.VALIDATION
    return {True: Part.TRAINED, False: Part.LEFT_OUT, None: Part.WAITING}[is_trained(rollout)]
