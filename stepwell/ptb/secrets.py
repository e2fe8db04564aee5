"""Secrets of a trial: what an agent is given by name, and what must not be found in anything that is kept or sent.

A secret is looked for as it is, in the forms in which programs print it (base64, URL, JSON, hexadecimal), and broken by
line ends and spaces. What was encrypted, compressed, reversed or split in two is not found.
"""

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, quote_plus

LEAST_SECRET = 8
"""Characters; a shorter secret would be redacted out of ordinary words."""

_STAMP = rb"[-0-9]{10}T[0-9:.]{15}Z (?:out|err|note) "
_BREAK = rb"(?:\s|\\{1,4}[nrt]|%0[AaDd]|%20|" + _STAMP + rb"){1,16}"
"""What may stand between two characters of a secret that was broken over lines, those of a trace, of JSON or of a URL
among them."""
_BROKEN = re.compile(_BREAK)
_BEGINNING = 6
"""Characters of a form by which places are found at which it may stand: a pattern of all would take long to compile."""


class SecretSurvives(ValueError):
    """A secret is in what would be kept or sent."""


class SecretTooShort(ValueError):
    """A secret that cannot be told from ordinary text."""


class MissingSecret(ValueError):
    """A secret was asked for by a name that has no value."""


class Secrets:
    """Values by name. Neither `repr` nor any error shows a value.

    Args:
        values: By name.

    Raises:
        SecretTooShort: one has fewer than `LEAST_SECRET` characters.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        for name, value in values.items():
            if len(value) < LEAST_SECRET:
                raise SecretTooShort(
                    f"the secret {name} has {len(value)} characters: wanted {LEAST_SECRET} or more, or leave it out"
                )
        self._values = dict(values)
        # The longest value first: one secret may begin another.
        names = sorted(self._values, key=lambda name: (-len(self._values[name]), name))
        self._forms = [(name, form) for name in names for form in _forms(self._values[name])]
        self._places = _places([form for _, form in self._forms])

    @classmethod
    def taken(cls, names: Iterable[str], source: Mapping[str, str]) -> "Secrets":
        """Those of the names, and nothing else of the source.

        Args:
            names: The allow-list.
            source: Where values are taken from: an environment.

        Raises:
            MissingSecret: a name has no value, or an empty one.
            SecretTooShort: as the constructor.
        """
        wanted = list(dict.fromkeys(names))
        missing = [name for name in wanted if not source.get(name)]
        if missing:
            raise MissingSecret(
                f"no value for {', '.join(missing)}: export it where the worker runs, or do not name it"
            )
        return cls({name: source[name] for name in wanted})

    @property
    def names(self) -> tuple[str, ...]:
        """Sorted."""
        return tuple(sorted(self._values))

    def environment(self) -> dict[str, str]:
        """Value by name, for the one process that may have them."""
        return dict(self._values)

    def redact(self, data: bytes) -> bytes:
        """The data with each secret, in each of its forms, replaced by `[redacted NAME]`.

        What was JSON or a URL stays one. A form that is a part of a longer base64 text takes with it only the
        characters that hang on the secret alone.
        """
        kept: list[bytes] = []
        at = 0
        for found in self._find(data):
            kept += [data[at : found.start], f"[redacted {found.name}]".encode()]
            at = found.end
        return b"".join([*kept, data[at:]]) if kept else data

    def survivors(self, data: bytes) -> tuple[str, ...]:
        """Names of the secrets that are in the data, in any form; none if it may be kept."""
        return tuple(sorted({found.name for found in self._find(data)}))

    def check(self, data: bytes, what: str) -> None:
        """Fails where a secret survives.

        Args:
            data: What would be kept or sent.
            what: How it is called in the error.

        Raises:
            SecretSurvives: one is in it.
        """
        if names := self.survivors(data):
            raise SecretSurvives(f"the secret {', '.join(names)} is in {what}: nothing of it was kept or sent")

    def _find(self, data: bytes) -> Iterator["_Found"]:
        if self._places is None:
            return
        after = 0
        for place in self._places.finditer(data):
            start = place.start()
            if start < after:
                continue
            for name, form in self._forms:
                end = _end_of(form, data, start)
                if end is not None:
                    yield _Found(name, start, end)
                    after = end
                    break

    def __repr__(self) -> str:
        return f"Secrets({', '.join(self.names)})"


def _forms(value: str) -> list[bytes]:
    """A secret as programs write it, the longest first."""
    return sorted(set(_written(value)), key=lambda form: (-len(form), form))


def _written(value: str) -> Iterator[bytes]:
    raw = value.encode("utf-8", "surrogateescape")
    once = json.dumps(value, ensure_ascii=False)[1:-1]
    for text in (value, once, json.dumps(value)[1:-1], json.dumps(once, ensure_ascii=False)[1:-1]):
        yield text.encode("utf-8", "surrogateescape")
        yield text.replace("/", "\\/").encode("utf-8", "surrogateescape")
    for quoted in (quote(raw), quote(raw, safe=""), quote_plus(raw)):
        yield quoted.encode()
        yield re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), quoted).encode()
    yield raw.hex().encode()
    yield raw.hex().upper().encode()
    yield from _base64(raw)


def _base64(raw: bytes) -> Iterator[bytes]:
    """What stands for the secret in a base64 text that holds it at any place, without the characters at its ends that
    hang on its neighbours too."""
    for before in range(3):
        padded = b"\0" * before + raw
        coded = base64.b64encode(padded)
        first = -(-before * 8 // 6)
        last = len(padded) * 8 // 6
        certain = coded[first:last]
        if len(certain) >= LEAST_SECRET:
            yield certain
            yield certain.translate(bytes.maketrans(b"+/", b"-_"))


@dataclass(frozen=True)
class _Found:
    name: str
    start: int
    end: int


def _places(forms: Sequence[bytes]) -> re.Pattern[bytes] | None:
    """Finds the places at which a form may begin, each of them."""
    beginnings: dict[bytes, list[bytes]] = {}
    for form in forms:
        rest = b"".join(b"(?:" + _BREAK + b")?" + re.escape(form[at : at + 1]) for at in range(1, _BEGINNING))
        beginnings.setdefault(form[:1], []).append(rest)
    if not beginnings:
        return None
    # One byte is taken and the rest looked at, so that a place within another's beginning is found too.
    first = [re.escape(byte) + b"(?=" + b"|".join(dict.fromkeys(rests)) + b")" for byte, rests in beginnings.items()]
    return re.compile(b"|".join(first))


def _end_of(form: bytes, data: bytes, start: int) -> int | None:
    """Where a form ends that begins at a place, whole or broken; None if it does not stand there."""
    if data.startswith(form, start):
        return start + len(form)
    at = start
    for place in range(len(form)):
        byte = form[place : place + 1]
        if data[at : at + 1] != byte:
            broken = _BROKEN.match(data, at) if place else None
            if broken is None or data[broken.end() : broken.end() + 1] != byte:
                return None
            at = broken.end()
        at += 1
    return at
