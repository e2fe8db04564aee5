"""Text as words that survive reformatting: case, punctuation, markup, escapes, and how a number is written.

words_of("Ten Bolts of <b>fibre</b>: 14,000.50!")  # ["10", "bolts", "of", "fibre", "14000.50"]
"""

import re
import unicodedata
from collections.abc import Sequence

NUMBER = "#"
"""What stands for every number where numbers are not compared."""

_WORD = re.compile(
    r"\d[\d,.]*\d|\d|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
)
"""Numbers with their separators, single characters of scripts that set no spaces, words."""
_TAG = re.compile(r"</?[a-zA-Z][^<>\n]{0,80}>")
_ESCAPE = re.compile(r"\\[nrt\"'/]|\\u00a0|&(?:nbsp|quot|amp|lt|gt|#39);")
_INVISIBLE = re.compile(r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")

_LOOKALIKES = str.maketrans(
    dict(zip("асеорхуіјѕ" + "οανικτ", "aceopxyijs" + "oavikt", strict=True))
)  # fmt: skip
"""Cyrillic and Greek letters that look like Latin ones, lower case."""
_LATIN = re.compile(r"[a-z]")

_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
_SPELLED = {word: str(value) for value, word in enumerate(_UNITS.split())} | {
    "thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "seventy": "70", "eighty": "80", "ninety": "90",
    "hundred": "100", "thousand": "1000", "million": "1000000",
}  # fmt: skip


def words_of(text: str) -> list[str]:
    """The words of a text, lower case; numbers in figures, without thousands separators."""
    if not text.isascii():
        text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    if "<" in text:
        text = _TAG.sub(" ", text)
    if "\\" in text or "&" in text:
        text = _ESCAPE.sub(" ", text)
    text = text.lower()
    if not text.isascii():
        text = text.replace("’", "'")
    found: list[str] = _WORD.findall(text)
    return [_plain(word) for word in found]


def without_numbers(words: Sequence[str]) -> list[str]:
    """The same words, each number replaced by `NUMBER`."""
    return [NUMBER if is_number(word) else word for word in words]


def numbers_of(words: Sequence[str]) -> list[str]:
    """The numbers among words, in order."""
    return [word for word in words if is_number(word)]


def is_number(word: str) -> bool:
    """Whether a word is a number in figures."""
    return word[0].isdecimal()


def _plain(word: str) -> str:
    if word[0].isdecimal():
        return word.replace(",", "")
    if not word.isascii() and _LATIN.search(word):
        # A word in one foreign script stays as it is; only a mixture of scripts is a disguise.
        return word.translate(_LOOKALIKES)
    return _SPELLED.get(word, word)
