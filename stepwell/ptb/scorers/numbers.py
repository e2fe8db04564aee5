"""Exact equality of numbers. 711 is not 11, 149 is not 49, 14,000 is 14000, −3 is not 13, 3.0 is 3, and 1/2 is 0.5.

An answer's last line `ANSWER: …` decides; in an answer without one, its last number does. A line that names several
numbers answers nothing: to name many is no way to be right.
"""

import re
from fractions import Fraction

from stepwell.ptb.item import NumberGold
from stepwell.ptb.scorers.worth import Scored

LONGEST = 400
"""Most characters of a number; longer ones are no answer to anything here."""
LARGEST_EXPONENT = 400

_MINUS = str.maketrans({"−": "-", "–": "-", "﹣": "-", "－": "-"})
_DIGITS = r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)"
_UNSIGNED = rf"(?:{_DIGITS}(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:/[0-9]+)?"
_NUMBER = re.compile(rf"(?<![0-9A-Za-z_.)])-\$?{_UNSIGNED}|{_UNSIGNED}")
_ANSWER = re.compile(r"answer\s*\**\s*:(.*)", re.IGNORECASE)
_THIN = re.compile(r"\\[,!; ]")
"""LaTeX's thin spaces, which may stand between the digits of one number."""


def score_number(answer: str, gold: NumberGold) -> Scored:
    """1 if the number that the answer gives is the gold one, else 0 with the reason."""
    stated = _stated(answer)
    if stated is not None:
        found = numbers_in(stated)
        if len(found) != 1:
            return Scored(0.0, f"the answer line names {len(found)} numbers, wanted one: {stated[:80]!r}")
    else:
        found = numbers_in(answer)[-1:]
        if not found:
            return Scored(0.0, "no number")
    if found[0] == gold.value:
        return Scored(1.0, "equal")
    return Scored(0.0, f"{_shown(found[0])} is not {_shown(gold.value)}")


def numbers_in(text: str) -> list[Fraction]:
    """All numbers of a text, exactly; what cannot be one (a division by 0, an absurd exponent) is left out."""
    plain = _THIN.sub("", text.translate(_MINUS)).replace("{,}", ",")
    found = (_exact(match[0]) for match in _NUMBER.finditer(plain))
    return [value for value in found if value is not None]


def number_of(text: str) -> Fraction | None:
    """The number that a text is, and nothing else."""
    match = _NUMBER.fullmatch(text.strip().translate(_MINUS))
    return None if match is None else _exact(match[0])


def _stated(answer: str) -> str | None:
    """What follows the last `ANSWER:`, on its line or, if that is blank, on the next that is not."""
    lines = answer.split("\n")
    for at in range(len(lines) - 1, -1, -1):
        match = _ANSWER.search(lines[at])
        if match:
            rest = match[1].strip(" \t*$`")
            below = next((line for line in lines[at + 1 :] if line.strip()), "")
            return rest or below
    return None


def _exact(text: str) -> Fraction | None:
    bare = re.sub(r"[\s,$]", "", text)
    if len(bare) > LONGEST:
        return None
    number, _, divisor = bare.partition("/")
    exponent = re.search(r"[eE]([+-]?[0-9]+)$", number)
    if exponent and abs(int(exponent[1])) > LARGEST_EXPONENT:
        return None
    if divisor and int(divisor) == 0:
        return None
    return Fraction(number) / (int(divisor) if divisor else 1)


def _shown(value: Fraction) -> str:
    return str(value)[:80]
