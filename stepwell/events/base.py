"""What all events have in common."""

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from stepwell.events.canonical import canonical_again, tagged_sha256

Kind = Literal["fact", "operational"]


class Event(BaseModel):
    """One fact, or one operational note, in a stream. Subclasses are frozen, carry a `type` tag, and name their key.

    A field is a fact unless it is listed in `MEASURED` (times, actors, durations): two runs that did the same have
    equal fact fields, however they were disturbed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    KIND: ClassVar[Kind] = "fact"
    SCHEMA: ClassVar[int] = 1
    MEASURED: ClassVar[frozenset[str]] = frozenset()
    UPCASTS: ClassVar[Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]]] = {}
    """For each older schema, the pure function from its body to that of the next."""

    type: str

    def key(self) -> str:
        """Domain key, unique in its stream: an append of the same key and the same fields again is a success.

        Every event type overrides it.
        """
        raise TypeError(f"{self.__class__.__name__} has no key()")

    def body(self) -> dict[str, Any]:
        """JSON form without the tag, which the envelope carries."""
        return self.model_dump(mode="json", exclude={"type"})

    def facts(self) -> dict[str, Any]:
        """The fields that are facts, in JSON form."""
        return self.model_dump(mode="json", exclude={"type", *self.MEASURED})


def facts_digest(events: Sequence[Event], bodies: Sequence[Mapping[str, Any]] = ()) -> str:
    """Digest over the fact fields of the fact events, by key: what a stream says, apart from how it came about.

    By key and not by place: where two coroutines of one workflow append to a stream, their turns are timing.

    Args:
        events: The stream's.
        bodies: As they are stored, each of its type's newest schema or empty: they save the way back into JSON.
    """
    parts: dict[str, bytes] = {}
    for event, body in zip_longest(events, bodies, fillvalue=_NO_BODY):
        assert isinstance(event, Event)
        if event.KIND == "fact":
            key = event.key()
            parts[key] = canonical_again({"key": key, "type": event.type, **_facts(event, body)})
    return tagged_sha256("facts", *(parts[key] for key in sorted(parts)))


_NO_BODY: Mapping[str, Any] = {}


def _facts(event: Event, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields that are facts; out of the stored body if it has them all."""
    if len(body) != len(type(event).model_fields) - 1:
        return event.facts()
    return {name: value for name, value in body.items() if name not in event.MEASURED}
