"""The chain of versions in words."""

from stepwell.audit.provenance.places import validation_ref, validations, versions
from stepwell.audit.provenance.reference import Ref
from stepwell.audit.provenance.source import RunSource
from stepwell.events import ValidationClosed

NAMED = 3
"""Validations that are named, the newest."""


def earlier_words(source: RunSource, ref: Ref) -> str:
    """What a version goes back to."""
    number, first = int(ref.parts[0]), min(versions(source), default=0)
    return f"and so on back to version {first}" if number > first else ""


def later_words(source: RunSource, ref: Ref) -> str:
    """What went on from a version."""
    number, last = int(ref.parts[0]), max(versions(source), default=0)
    said = [f"and so on to version {last}"] if last > number else []
    over = [
        f"{validation_ref(opened)} with pass@{closed.event.k} {closed.event.pass_k:.3f}"
        for opened in validations(source)
        if opened.event.version >= number
        for closed in source.every(opened.stream, ValidationClosed)
    ]
    if over:
        said.append(
            f"validated in {len(over)}: {', '.join(over[-NAMED:])}" if len(over) > 1 else f"validated: {over[0]}"
        )
    return "; ".join(said)
