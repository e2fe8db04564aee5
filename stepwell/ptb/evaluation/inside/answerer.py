"""What answers questions, whichever engine; and what both engines share: tokens in, text out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tokenizers import Tokenizer

from stepwell.ptb.evaluation.result import Answer, AnswerEnd
from stepwell.ptb.evaluation.wire import Question, Setup

BEAT_S = 5.0
"""How often a long batch says that it goes on."""


class Unanswerable(Exception):
    """The submission gives no answers: what is wrong with it."""


class Answerer(Protocol):
    """A loaded model."""

    @property
    def environment(self) -> dict[str, str]:
        """What decides the bits of its answers."""
        ...

    def answer(self, questions: Sequence[Question]) -> list[Answer]:
        """Answers one batch; each answer depends on the batch alone, not on those before it.

        Raises:
            Unanswerable: the model cannot be sampled from.
        """
        ...


class Texts:
    """The submission's tokenizer, and the ends of its answers.

    Args:
        path: Of `tokenizer.json`.
        setup: Names the ends.
        vocabulary: Of the model.

    Raises:
        Unanswerable: it is no tokenizer.
    """

    def __init__(self, path: Path, setup: Setup, vocabulary: int) -> None:
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises nothing narrower
            raise Unanswerable(f"tokenizer.json is no tokenizer: {str(error)[:300]}") from error
        self._end_of_turn = setup.end_of_turn
        self._vocabulary = vocabulary
        named = [self._tokenizer.token_to_id(text) for text in (setup.end_of_turn, *setup.stop_texts) if text]
        known: set[int] = {*setup.stop_ids, *(one for one in named if one is not None)}
        self.stop_ids = tuple(sorted(known))

    def ids(self, prompt: str) -> tuple[int, ...]:
        """Tokens of a question; control tokens in it are read as such.

        Raises:
            Unanswerable: there are none, or one that the model has not.
        """
        ids = tuple(self._tokenizer.encode(prompt, add_special_tokens=False).ids)
        if not ids:
            raise Unanswerable("tokenizer.json makes no token of a question")
        if max(ids) >= self._vocabulary:
            raise Unanswerable(
                f"tokenizer.json makes token {max(ids)} of a question, and the model has {self._vocabulary}"
            )
        return ids

    def answer(self, ids: Sequence[int], prompt_tokens: int, end: AnswerEnd) -> Answer:
        """The text of generated tokens, without what ended it."""
        said = list(ids[:-1] if end == "stop" else ids)
        text: str = self._tokenizer.decode(said, skip_special_tokens=True)
        if self._end_of_turn and self._end_of_turn in text:
            # Of a tokenizer that has no token for it.
            text, end = text.split(self._end_of_turn, 1)[0], "stop"
        return Answer(text=text, end=end, prompt_tokens=prompt_tokens, tokens=len(ids))
