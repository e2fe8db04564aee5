"""One value, one sequence of bytes."""

import hashlib
import json
import math
from enum import IntEnum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell.events.canonical import NotCanonical, canonical_json, digest_of_json, tagged_sha256

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4), max_leaves=12
)


def typed(value: object) -> object:
    """A value in which 1, 1.0 and True, and 0.0 and -0.0, differ, as they do in JSON."""
    if isinstance(value, dict):
        return {key: typed(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [typed(inner) for inner in value]
    return (type(value).__name__, value, math.copysign(1, value) if isinstance(value, float) else 0)


def reordered(value: object) -> object:
    """The same value with every object built in the reverse order."""
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(value)}
    if isinstance(value, list):
        return [reordered(inner) for inner in value]
    return value


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ({"b": 1, "a": [True, None, "x"]}, b'{"a":[true,null,"x"],"b":1}'),
        (0.1 + 0.2, b"0.30000000000000004"),
        (1e22, b"1e+22"),
        (-0.0, b"-0.0"),
        (2**70, b"1180591620717411303424"),
        ('é\n"\\\x01/', b'"\xc3\xa9\\n\\"\\\\\\u0001/"'),
        ({"\uffff": 1, "\U00010000": 2}, b'{"\xef\xbf\xbf":1,"\xf0\x90\x80\x80":2}'),
        ({}, b"{}"),
    ],
    ids=[
        "keys sorted",
        "shortest float",
        "exponent",
        "negative zero",
        "big integer",
        "escapes",
        "code points",
        "empty",
    ],
)
def test_bytes_are_those_of_the_specification(value: object, wanted: bytes) -> None:
    assert canonical_json(value) == wanted


@settings(deadline=None)
@given(VALUES)
def test_bytes_do_not_depend_on_the_order_of_building(value: object) -> None:
    assert canonical_json(reordered(value)) == canonical_json(value)


@settings(deadline=None)
@given(VALUES)
def test_bytes_read_back_to_the_same_value_and_the_same_bytes(value: object) -> None:
    exact = canonical_json(value)
    again = json.loads(exact)
    assert typed(again) == typed(value)
    assert canonical_json(again) == exact


@settings(deadline=None)
@given(VALUES, VALUES)
def test_different_values_have_different_bytes(one: object, other: object) -> None:
    assert (canonical_json(one) == canonical_json(other)) == (typed(one) == typed(other))


class Colour(IntEnum):
    RED = 1


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, {1: "a"}, {None: 1}, (1, 2), {1, 2}, b"x", "\ud800", {"\ud800": 1}, pytest],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("wrap", [lambda v: v, lambda v: {"deep": [v]}], ids=["bare", "nested"])
def test_what_json_has_not_is_refused(value: object, wrap) -> None:
    with pytest.raises(NotCanonical):
        canonical_json(wrap(value))


def test_an_enum_of_integers_is_written_as_its_integer() -> None:
    assert canonical_json({"c": Colour.RED}) == b'{"c":1}'


def test_a_refusal_names_the_place() -> None:
    with pytest.raises(NotCanonical, match=r"\$\.turns\[1\]\.tool"):
        canonical_json({"turns": [{}, {"tool": (1,)}]})


@settings(deadline=None)
@given(st.lists(st.binary(max_size=20), max_size=4))
def test_a_tagged_digest_is_sha256_over_tag_and_lengths(parts: list[bytes]) -> None:
    framed = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    assert tagged_sha256("link", *parts) == hashlib.sha256(b"stepwell/link\x00" + framed).hexdigest()


def test_tags_and_boundaries_of_parts_change_the_digest() -> None:
    digests = [
        tagged_sha256("event", b"ab"),
        tagged_sha256("link", b"ab"),
        tagged_sha256("event", b"a", b"b"),
        tagged_sha256("event", b"", b"ab"),
        digest_of_json("ab"),
    ]
    assert len(set(digests)) == len(digests)
