"""When a run counts as stopped."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from stepwell.audit.record import RunRecord
from stepwell.events import StepTrained
from stepwell.mlperf.certificate.evaluations import passing
from stepwell.mlperf.certificate.recipe import CertifiedRecipe

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Stop(NamedTuple):
    """The event whose time is the run's stop."""

    version: int
    """The version that passed."""
    stream: str
    """Stream of the event."""
    seq: int
    """Its place there."""
    time: str
    """The database's time of it."""

    @property
    def time_ms(self) -> int:
        """Whole milliseconds since 1970."""
        return milliseconds(self.time)


def stop_of(record: RunRecord, recipe: CertifiedRecipe) -> Stop | None:
    """Inline the moment at which the result of the version that passed was known; by the offline rule that at which its
    weights were made, since saving and evaluating it do not count (MLCommons policies, pull request 596). None: no
    version passed, or the time of that event is not known."""
    passed = passing(record, recipe)
    if passed is None:
        return None
    version, stream, seq = passed.event.version, record.run_events, passed.seq
    if recipe.validation.mode == "offline":
        trained = record.weights.every(StepTrained) if record.weights else []
        made = [at for at, event in trained if event.version == version]
        if record.weights is None or not made:
            return None
        stream, seq = record.weights, made[0]
    return Stop(version, stream.name, seq, stream.times[seq]) if seq < len(stream.times) else None


def milliseconds(time: str) -> int:
    """Whole milliseconds from 1970 to a time in ISO 8601."""
    return (datetime.fromisoformat(time) - _EPOCH) // timedelta(milliseconds=1)
