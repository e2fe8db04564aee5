"""Whether a stretch of a row is a part of the benchmark: in its words, or with other numbers.

Three measures, of which the greatest counts: the share of the part's n-grams; of its words in the same order, in runs
of two and more (a word replaced here and there does not matter); and of its words in any order, where nearly all are
there (nor does the order of sentences). A word weighs ln((parts + 1) / parts that have it): what the rows of a
benchmark have in common tells nothing.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from stepwell.ptb.contamination.index import GRAM, Candidate
from stepwell.ptb.contamination.items import Part
from stepwell.ptb.contamination.words import NUMBER, numbers_of, without_numbers

MatchKind = Literal["verbatim", "numbers changed", "paraphrase"]
"""How a part was found."""

LONG_WORDS, SHORT_WORDS = 24, 10
"""A part from the first length on is found by `ENOUGH` of it, one of the second only whole; between, linearly."""
ENOUGH = 0.8
ENOUGH_WITHOUT_NUMBERS = 0.9
"""Where numbers differ, the rest must agree the more: problems of one kind resemble each other."""
LEAST_PLAIN_WORDS = 12
"""Different words beside the numbers that a part needs for its numbers not to matter."""
ALIGNED_FROM = 0.15
"""Share of n-grams below which words are not aligned: with a word in six replaced, 0.4 of them remain."""
ANY_ORDER = 0.95
"""Share of words that are enough in any order, where their n-grams have made the place worth a look."""
_LEAST_RUN = 2


@dataclass(frozen=True)
class Match:
    """A part found in a stretch."""

    kind: MatchKind
    score: float
    """Share of the part that is there, from 0 to 1."""


class Matcher:
    """Compares parts with stretches.

    Args:
        parts: Of the benchmark: what is in many of them weighs little.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        having = Counter(word for part in parts for word in {*part.words, *without_numbers(part.words)})
        self._weights = {word: math.log((len(parts) + 1) / count) for word, count in having.items()}

    def match(self, part: Part, stretch: Sequence[str]) -> Match | None:
        """How a part is in a stretch of words, None if it is not."""
        wanted = enough_of(len(part.words))
        exact = likeness(part.words, stretch, wanted, self._weights, aligns=part.kind == "question")
        if exact >= wanted and _same_numbers(part.words, stretch):
            return Match("verbatim", exact)
        plain_words = without_numbers(part.words)
        if part.kind == "question" and NUMBER in plain_words and len(set(plain_words) - {NUMBER}) >= LEAST_PLAIN_WORDS:
            least = max(wanted, ENOUGH_WITHOUT_NUMBERS)
            plain = likeness(plain_words, without_numbers(stretch), least, self._weights)
            if plain >= least:
                return Match("numbers changed", plain)
        return Match("verbatim", exact) if exact >= wanted else None


def enough_of(words: int) -> float:
    """Least likeness for a part of so many words."""
    whole = (LONG_WORDS - words) / (LONG_WORDS - SHORT_WORDS)
    return ENOUGH + (1.0 - ENOUGH) * min(1.0, max(0.0, whole))


def likeness(
    part: Sequence[str], stretch: Sequence[str], wanted: float, weights: Mapping[str, float], *, aligns: bool = True
) -> float:
    """The greatest of the measures, from 0 to 1; the dear ones are left out where they decide nothing.

    Args:
        part: Words that are looked for.
        stretch: Words that may hold them.
        wanted: Least likeness that decides.
        weights: Of each word of the part.
        aligns: Whether the other measures count: not for answers, whose programs and tests are alike in outline.
    """
    shared = _shared_grams(part, stretch, weights)
    if shared >= wanted or shared < ALIGNED_FROM or not aligns:
        return shared
    bag = _same_words(part, stretch, weights)
    return max(shared, _aligned(part, stretch, weights), bag if bag >= ANY_ORDER else 0.0)


def widened(candidate: Candidate, part: Part, words: Sequence[str]) -> Sequence[str]:
    """The words of a stretch, with as many around it as the part may have where its n-grams did not match."""
    missing = max(GRAM, len(part.words) - (candidate.end - candidate.start) + GRAM)
    return words[max(0, candidate.start - missing) : candidate.end + missing]


def _shared_grams(part: Sequence[str], stretch: Sequence[str], weights: Mapping[str, float]) -> float:
    wanted = {tuple(part[at : at + GRAM]) for at in range(len(part) - GRAM + 1)}
    there = {tuple(stretch[at : at + GRAM]) for at in range(len(stretch) - GRAM + 1)}
    total = sum(weights[word] for gram in wanted for word in gram)
    return sum(weights[word] for gram in wanted & there for word in gram) / total if total else 0.0


def _aligned(part: Sequence[str], stretch: Sequence[str], weights: Mapping[str, float]) -> float:
    blocks = SequenceMatcher(None, part, stretch, autojunk=False).get_matching_blocks()
    total = sum(weights[word] for word in part)
    found = (part[block.a : block.a + block.size] for block in blocks if block.size >= _LEAST_RUN)
    return sum(weights[word] for words in found for word in words) / total if total else 0.0


def _same_words(part: Sequence[str], stretch: Sequence[str], weights: Mapping[str, float]) -> float:
    there = Counter(part) & Counter(stretch)
    total = sum(weights[word] for word in part)
    return sum(weights[word] * count for word, count in there.items()) / total if total else 0.0


def _same_numbers(part: Sequence[str], stretch: Sequence[str]) -> bool:
    there = set(numbers_of(stretch))
    numbers = numbers_of(part)
    return sum(number in there for number in numbers) >= ENOUGH * len(numbers)
