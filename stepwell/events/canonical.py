"""The one encoding of facts: canonical JSON, and SHA-256 under a domain tag.

Two values that are equal have the same bytes: keys sorted by code point, no spaces, floats by Python's `repr`, UTF-8
without escapes. NaN and infinities are refused, so are keys that are not strings. Blob names carry no tag (they are
plain SHA-256, checkable with `sha256sum`); every other digest does, so that a digest of one kind never passes for one
of another.
"""

import hashlib
import json
from typing import Literal

Tag = Literal["event", "link", "merkle", "facts", "json"]


_ENCODER = json.JSONEncoder(
    ensure_ascii=False,
    allow_nan=False,
    sort_keys=True,
    separators=(",", ":"),
    check_circular=False,  # what comes here was walked once, or is fresh from JSON: a tree
)


class NotCanonical(ValueError):
    """A value that has no canonical form."""


def canonical_json(value: object) -> bytes:
    """Exact bytes of a JSON value.

    Raises:
        NotCanonical: NaN, an infinity, a key that is no string, a lone surrogate, or a type that JSON has not.
    """
    _refuse_foreign(value, "$")
    return canonical_again(value)


def canonical_again(value: object) -> bytes:
    """Exact bytes of a value that came out of JSON, so holds nothing foreign to it. Raises as `canonical_json`."""
    try:
        return _ENCODER.encode(value).encode("utf-8")
    except (ValueError, TypeError) as error:
        raise NotCanonical(f"no canonical JSON for this value: {error}") from error


def tagged_sha256(tag: Tag, *parts: bytes) -> str:
    """SHA-256 in hex over `stepwell/<tag>\\0` and the length-prefixed parts."""
    digest = hashlib.sha256(tag_bytes(tag))
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()


def tag_bytes(tag: Tag) -> bytes:
    """What a tagged SHA-256 takes in first; each part follows it after its length, 8 bytes, big-endian."""
    return f"stepwell/{tag}\0".encode()


def digest_of_json(value: object) -> str:
    """Tagged digest of a JSON value's canonical form."""
    return tagged_sha256("json", canonical_json(value))


def _refuse_foreign(value: object, where: str) -> None:
    """`json.dumps` coerces what is not JSON (integer keys, tuples, subclasses); facts do not travel that way."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise NotCanonical(f"{where}: key {key!r} is a {type(key).__name__}, keys are strings")
            _refuse_foreign(inner, f"{where}.{key}")
        return
    if isinstance(value, list):
        for index, inner in enumerate(value):
            _refuse_foreign(inner, f"{where}[{index}]")
        return
    raise NotCanonical(f"{where}: {type(value).__name__} has no JSON form")
