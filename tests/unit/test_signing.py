"""Signatures of heads, by the library and by the verifier that stands alone, against the vectors of RFC 8032."""

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.audit import standalone
from stepwell.events.head_signed import StreamHead
from stepwell.signing import SigningKey, SigningKeys, UnusableKey, head_message, is_signed

VECTORS = {
    "empty": (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    "one byte": (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    "two bytes": (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
}
"""Secret key, public key, message and signature: RFC 8032, 7.1."""
L = 2**252 + 27742317777372353535851937790883648493


@pytest.mark.parametrize(("secret", "public", "message", "signature"), VECTORS.values(), ids=VECTORS)
def test_the_vectors_of_the_rfc_hold(secret: str, public: str, message: str, signature: str) -> None:
    key, data = SigningKey.of(bytes.fromhex(secret)), bytes.fromhex(message)
    assert (key.public, key.sign(data)) == (public, signature)
    assert is_signed(public, data, signature)
    assert standalone.is_signed(bytes.fromhex(public), data, bytes.fromhex(signature))


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=80), st.integers(0, 64 * 8 - 1))
def test_both_accept_what_was_signed_and_nothing_else(secret: bytes, message: bytes, bit: int) -> None:
    key = SigningKey.of(secret)
    signature = bytes.fromhex(key.sign(message))
    flipped = bytearray(signature)
    flipped[bit // 8] ^= 1 << bit % 8
    public = bytes.fromhex(key.public)
    for signed, holds in ((signature, True), (bytes(flipped), False)):
        assert standalone.is_signed(public, message, signed) == is_signed(key.public, message, signed.hex()) == holds
    assert not standalone.is_signed(public, message + b"x", signature)


@pytest.mark.parametrize("signature", ["", "00", "zz", "00" * 64])
def test_what_is_no_signature_is_none(signature: str) -> None:
    assert not is_signed(VECTORS["empty"][1], b"", signature)


def test_a_factor_beyond_the_groups_order_is_refused() -> None:
    _, public, _, signature = VECTORS["empty"]
    signed = bytes.fromhex(signature)
    beyond = signed[:32] + (int.from_bytes(signed[32:], "little") + L).to_bytes(32, "little")
    assert not standalone.is_signed(bytes.fromhex(public), b"", beyond)


def test_a_message_binds_run_and_moment_and_what_came_before() -> None:
    heads = [StreamHead(stream="run/a", seq=1, head="0" * 64)]
    messages = [
        head_message("seal/a", "1", heads, ""),
        head_message("seal/b", "1", heads, ""),
        head_message("seal/a", "2", heads, ""),
        head_message("seal/a", "1", heads, "00"),
        head_message("seal/a", "1", [], ""),
    ]
    assert len(set(messages)) == len(messages)


def test_a_runs_key_is_made_once_and_read_by_its_owner_only(tmp_path: Path) -> None:
    keys = SigningKeys(tmp_path / "keys")
    assert keys.find("micro-1") is None
    made = keys.make("micro-1")
    assert keys.make("micro-1").public == made.public
    assert SigningKeys(tmp_path / "keys").make("micro-2").public != made.public
    files = list((tmp_path / "keys").iterdir())
    assert len(files) == 2, "no draft is left"
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o700


def test_a_key_that_was_given_signs_all_runs_and_none_is_made(tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.write_text("07" * 32 + "\n")
    keys = SigningKeys(tmp_path / "keys", given)
    keys.check()
    assert keys.make("a").public == keys.make("b").public == SigningKey.of(b"\7" * 32).public
    assert not (tmp_path / "keys").exists()


@pytest.mark.parametrize("content", ["", "00" * 31, "not a key"])
def test_a_file_without_a_key_is_refused_and_says_what_to_do(content: str, tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.write_text(content)
    with pytest.raises(UnusableKey, match="openssl rand -hex 32"):
        SigningKeys(tmp_path, given).check()


def test_a_given_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnusableKey, match="cannot be read"):
        SigningKeys(tmp_path, tmp_path / "missing").check()
