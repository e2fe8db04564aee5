"""Multiple choice: the last line `ANSWER: letter` decides, by the letter that it begins with."""

import re

from stepwell.ptb.item import ChoiceGold
from stepwell.ptb.scorers.worth import Scored

_ANSWER = re.compile(r"answer\s*\**\s*:(.*)", re.IGNORECASE)
_ONE = re.compile(r"[\s*$`(\[]*(?:\\(?:text|boxed)\{)?([A-Za-z])[\s*$`)\].}:]*(?:[.):]\s.*)?")


def score_choice(answer: str, gold: ChoiceGold) -> Scored:
    """1 if the last answer line begins with the gold letter, alone, else 0 with the reason."""
    lines = [match[1] for line in answer.split("\n") if (match := _ANSWER.search(line))]
    if not lines:
        return Scored(0.0, "no answer line")
    match = _ONE.fullmatch(lines[-1])
    letter = match[1].upper() if match else ""
    if letter not in gold.letters or not letter:
        return Scored(0.0, f"the answer line names no single letter of {gold.letters}: {lines[-1].strip()[:80]!r}")
    if letter == gold.letter:
        return Scored(1.0, "equal")
    return Scored(0.0, f"{letter} is not {gold.letter}")
