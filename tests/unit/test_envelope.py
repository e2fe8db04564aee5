"""Chains of sealed events: what was appended verifies, anything else does not."""

import hashlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell.events.canonical import NotCanonical, canonical_json
from stepwell.events.envelope import (
    GENESIS,
    BrokenLink,
    Envelope,
    draft,
    hash_of,
    open_envelope,
    seal,
    verify_link,
)

TIME = "2026-01-31T23:59:59.000001Z"
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
BODIES = st.dictionaries(TEXTS, SCALARS | st.lists(SCALARS, max_size=3), max_size=3)


def chain(bodies: list[dict], stream: str = "test/a") -> list[Envelope]:
    envelopes: list[Envelope] = []
    for seq, body in enumerate(bodies):
        previous = envelopes[-1].hash if envelopes else GENESIS
        envelopes.append(
            seal(
                stream=stream,
                seq=seq,
                key=f"k/{seq}",
                type="Tested",
                schema=1,
                actor="test:me",
                body=body,
                prev_hash=previous,
                time=TIME,
            )
        )
    return envelopes


def verify(envelopes: list[Envelope]) -> None:
    previous = GENESIS
    for seq, envelope in enumerate(envelopes):
        verify_link(envelope.exact_bytes(), stream="test/a", seq=seq, prev_hash=previous, hash=envelope.hash)
        previous = envelope.hash


@settings(deadline=None)
@given(TEXTS, TEXTS, st.integers(0, 2**62), BODIES)
def test_a_filled_draft_is_the_canonical_json_of_the_whole(stream: str, key: str, seq: int, body: dict) -> None:
    drafted = draft(stream=stream, seq=seq, key=key, type="Tested", schema=3, actor="test:é", body=body)
    whole = {
        "stream": stream,
        "seq": seq,
        "key": key,
        "type": "Tested",
        "schema": 3,
        "time": TIME,
        "actor": "test:é",
        "body": body,
        "prev": GENESIS,
    }
    assert drafted.fill(prev_hash=GENESIS, time=TIME) == canonical_json(whole)


def test_the_hash_is_tagged_sha256_over_the_exact_bytes() -> None:
    (only,) = chain([{"a": 1}])
    exact = only.exact_bytes()
    framed = b"stepwell/event\x00" + len(exact).to_bytes(8, "big") + exact
    assert only.hash == hashlib.sha256(framed).hexdigest()


@settings(deadline=None)
@given(BODIES)
def test_stored_bytes_open_to_the_envelope_that_was_sealed(body: dict) -> None:
    (only,) = chain([body])
    assert open_envelope(only.exact_bytes()) == only


@settings(deadline=None)
@given(st.lists(BODIES, min_size=1, max_size=4))
def test_a_chain_verifies(bodies: list[dict]) -> None:
    verify(chain(bodies))


@settings(deadline=None)
@given(st.lists(BODIES, min_size=1, max_size=3), st.data())
def test_any_flipped_bit_is_found(bodies: list[dict], data: st.DataObject) -> None:
    at = data.draw(st.sampled_from(chain(bodies)))
    exact = bytearray(at.exact_bytes())
    exact[data.draw(st.integers(0, len(exact) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(BrokenLink):
        verify_link(bytes(exact), stream=at.stream, seq=at.seq, prev_hash=at.prev_hash, hash=at.hash)


@settings(deadline=None)
@given(st.data())
def test_a_rewritten_event_with_its_own_new_hash_breaks_the_next(data: st.DataObject) -> None:
    envelopes = chain([{"n": n} for n in range(4)])
    at = data.draw(st.integers(0, 2))
    changed = chain([{"n": n if n != at else 99} for n in range(4)])[at]
    with pytest.raises(BrokenLink, match="event before"):
        verify([*envelopes[:at], changed, *envelopes[at + 1 :]])


@pytest.mark.parametrize(
    ("stream", "seq", "prev_hash", "why"),
    [
        ("test/b", 1, None, "belong to test/a #1"),
        ("test/a", 2, None, "belong to test/a #1"),
        ("test/a", 1, GENESIS, "event before"),
    ],
    ids=["another stream", "another place", "another predecessor"],
)
def test_an_event_verifies_only_where_it_was_appended(stream: str, seq: int, prev_hash: str | None, why: str) -> None:
    first, second = chain([{}, {}])
    with pytest.raises(BrokenLink, match=why):
        verify_link(second.exact_bytes(), stream=stream, seq=seq, prev_hash=prev_hash or first.hash, hash=second.hash)


def rewritten(change) -> bytes:
    (only,) = chain([{"a": 1}])
    value = json.loads(only.exact_bytes())
    change(value)
    return canonical_json(value)


@pytest.mark.parametrize(
    ("exact", "why"),
    [
        (b"\xff", "no JSON"),
        (b"[]", "an envelope is an object"),
        (rewritten(lambda v: v.pop("key")), "fields"),
        (rewritten(lambda v: v.update(extra=1)), "fields"),
        (rewritten(lambda v: v.update(seq=True)), "seq"),
        (rewritten(lambda v: v.update(seq=-1)), "seq"),
        (rewritten(lambda v: v.update(schema="1")), "schema"),
        (rewritten(lambda v: v.update(actor=None)), "actor"),
        (rewritten(lambda v: v.update(body=[])), "body"),
        (rewritten(lambda v: v.update(time="2026-01-31 23:59:59")), "time"),
        (chain([{"a": 1}])[0].exact_bytes().replace(b'{"a":1}', b'{"a": 1}'), "canonical"),
        (chain([{"a": 1}])[0].exact_bytes().replace(b'{"a":1}', b'{"a":2,"a":1}'), "canonical"),
        (chain([{"a": 1}])[0].exact_bytes().replace(b'{"a":1}', b'{"a":NaN}'), "NaN|nan|float"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bytes_of_another_form_are_refused_even_with_their_right_hash(exact: bytes, why: str) -> None:
    with pytest.raises(BrokenLink, match=why):
        verify_link(exact, stream="test/a", seq=0, prev_hash=GENESIS, hash=hash_of(exact))


def test_a_body_without_canonical_form_is_not_sealed() -> None:
    with pytest.raises(NotCanonical):
        chain([{"loss": float("nan")}])
