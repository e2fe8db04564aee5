"""Every string of a nested value, whatever the keys: chat messages, tool calls, columns, lists of lines.

A key is a string too where it is long enough to hold text. Text in base64 is read as well, and token ids where there is
a tokenizer; without one they are counted as not scanned.
"""

import base64
import binascii
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

KEY_CHARACTERS = 24
"""A key from this length on is taken for text: names of fields are shorter."""
LEAST_IDS = 16
"""A list of so many whole numbers may be token ids."""
LARGEST_ENCODED = 64 << 20
"""Bytes that an encoded string may unpack to."""
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{60,}={0,2}")
_NO_STRINGS = (bool, int, float, type(None))

Decode = Callable[[list[int]], str]
"""Text of token ids."""


@dataclass
class Leaves:
    """Strings of one row."""

    texts: list[str] = field(default_factory=list[str])
    """In order."""
    undecoded: int = 0
    """Lists that look like token ids, and were not read."""


def leaves_of(value: object, decode: Decode | None = None) -> Leaves:
    """Strings in a value of JSON, YAML, parquet or the like; anything that is none of their types by `str`.

    Args:
        value: Nested mappings, sequences and scalars.
        decode: Reads token ids; without it they are counted.
    """
    found = Leaves()
    _walk(value, found, decode)
    return found


def _walk(value: object, found: Leaves, decode: Decode | None) -> None:
    if isinstance(value, str):
        _add(value, found)
    elif isinstance(value, _NO_STRINGS):
        return
    elif isinstance(value, bytes | bytearray):
        _add(bytes(value).decode("utf-8", "replace"), found)
    elif isinstance(value, Mapping):
        for key, below in cast("Mapping[object, object]", value).items():
            if isinstance(key, str) and len(key) >= KEY_CHARACTERS:
                _add(key, found)
            _walk(below, found, decode)
    elif isinstance(value, Sequence | set | frozenset):
        _walk_list(list(cast("Sequence[object]", value)), found, decode)
    else:
        _add(str(value), found)


def _walk_list(values: list[object], found: Leaves, decode: Decode | None) -> None:
    if len(values) >= LEAST_IDS and all(type(each) is int for each in values):
        ids = cast("list[int]", values)
        if len(set(ids)) <= 2:  # a mask: attention, loss
            return
        if decode is None:
            found.undecoded += 1
        else:
            found.texts.append(decode(ids))
        return
    for each in values:
        _walk(each, found, decode)


def _add(text: str, found: Leaves) -> None:
    if not text or text.isspace():
        return
    found.texts.append(text)
    found.texts += _encoded(text)


def _encoded(text: str) -> Iterator[str]:
    """Texts in base64 that a string consists of, or holds."""
    for match in _BASE64.finditer(text):
        if len(match[0]) >= 60 and (decoded := _from_base64(match[0])) is not None:
            yield decoded


def _from_base64(text: str) -> str | None:
    body = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        raw = base64.b64decode(body + "=" * (-len(body) % 4), validate=True)
        if raw.startswith(b"\x1f\x8b"):
            raw = zlib.decompressobj(wbits=31).decompress(raw, LARGEST_ENCODED)
        decoded = raw.decode("utf-8")
    except (binascii.Error, UnicodeDecodeError, zlib.error):
        return None  # a digest, a key, a path: not text in base64
    return decoded if decoded and sum(map(str.isprintable, decoded)) >= 0.9 * len(decoded) else None


def token_decoder(path: Path) -> Decode:
    """Reads token ids by a `tokenizer.json`.

    Raises:
        ValueError: the file is missing, or is no tokenizer.
    """
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises nothing narrower
        raise ValueError(f"cannot read the tokenizer {path}: {error}; wanted a tokenizer.json") from error
    size = tokenizer.get_vocab_size()
    return lambda ids: tokenizer.decode([each for each in ids if 0 <= each < size])
