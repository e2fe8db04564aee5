"""Signatures of a run's heads: Ed25519 (RFC 8032), and the files that hold the private keys.

A private key is 32 bytes, in hex, in a file that only its owner may read. It is in no ledger and no object store.
"""

import contextlib
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from stepwell.events.canonical import canonical_json
from stepwell.events.head_signed import StreamHead

KEY_BYTES = 32


class UnusableKey(ValueError):
    """A file that should hold a private key does not, or cannot be read."""


def head_message(stream: str, at: str, heads: Sequence[StreamHead], before: str) -> bytes:
    """What is signed: the canonical JSON of a `HeadSigned` without its signature and with its stream, under a tag."""
    said = {"at": at, "before": before, "heads": [head.model_dump() for head in heads], "stream": stream}
    return b"stepwell/head\0" + canonical_json(said)


def is_signed(public_key: str, message: bytes, signature: str) -> bool:
    """Whether a signature is the key's; False too for what is no key or no signature.

    Args:
        public_key: In hex.
        message: What was signed.
        signature: In hex.
    """
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key)).verify(bytes.fromhex(signature), message)
    except (InvalidSignature, ValueError):
        return False
    return True


@dataclass(frozen=True)
class SigningKey:
    """A private key."""

    _key: Ed25519PrivateKey

    @classmethod
    def of(cls, secret: bytes) -> "SigningKey":
        """The key of 32 secret bytes.

        Raises:
            ValueError: they are not 32.
        """
        return cls(Ed25519PrivateKey.from_private_bytes(secret))

    @property
    def public(self) -> str:
        """Its public half, in hex."""
        return self._key.public_key().public_bytes_raw().hex()

    def sign(self, message: bytes) -> str:
        """The signature, in hex."""
        return self._key.sign(message).hex()


@dataclass(frozen=True)
class SigningKeys:
    """Where the private keys of this machine's runs are."""

    folder: Path
    """A file for each run, made when the run's key is first needed."""
    given: Path | None = None
    """A file with one key for all runs, as several control workers need; with it no file is made."""

    def check(self) -> None:
        """See that the key that was given can be used.

        Raises:
            UnusableKey: it cannot; says why.
        """
        if self.given is not None:
            _read(self.given)

    def find(self, run: str) -> SigningKey | None:
        """The run's private key; None if this machine does not have it.

        Raises:
            UnusableKey: the file is there, and is no key or may not be read.
        """
        if self.given is not None:
            return _read(self.given)
        path = self._path(run)
        return _read(path) if path.exists() else None

    def make(self, run: str) -> SigningKey:
        """The run's private key, drawn now if there is none.

        Raises:
            UnusableKey: as `find`; or it cannot be written.
        """
        standing = self.find(run)
        if standing is not None:
            return standing
        path = self._path(run)
        try:
            self._draw(path)
        except OSError as error:
            raise UnusableKey(f"no signing key can be written to {path}: {error.strerror}") from error
        return _read(path)

    def _draw(self, path: Path) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(secrets.token_hex(KEY_BYTES) + "\n")
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(FileExistsError):  # one that another process has just made stays
                os.link(draft, path)
        finally:
            draft.unlink()

    def _path(self, run: str) -> Path:
        return self.folder / f"{run.replace('/', '%2F')}.ed25519"


def _read(path: Path) -> SigningKey:
    try:
        return SigningKey.of(bytes.fromhex(path.read_text().strip()))
    except OSError as error:
        raise UnusableKey(f"the signing key {path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UnusableKey(
            f"{path} holds no signing key: wanted {KEY_BYTES} bytes as {2 * KEY_BYTES} hexadecimal digits, as of "
            f"`openssl rand -hex {KEY_BYTES}`"
        ) from error
