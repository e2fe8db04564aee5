"""What a judge is shown of an answer."""

import re
from functools import lru_cache

MOST_REPEATS = 5
"""A pattern that stands more often in a row is cut to so many."""
LONGEST_PATTERN = 200

_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_REPEATED = re.compile(rf"(.{{1,{LONGEST_PATTERN}}}?)\1{{{MOST_REPEATS},}}", re.DOTALL)


@lru_cache(maxsize=1024)  # A baseline is shown twice in each pass.
def shown_answer(answer: str) -> str:
    """The answer without the thought at its beginning, and without endless repetitions, which only cost the judge."""
    return _REPEATED.sub(lambda match: match[1] * MOST_REPEATS, _THOUGHT.sub("", answer)).strip()
