"""What passes between the evaluation and the process in the sandbox: JSON lines, first one of setup, then questions.

The process inside is told questions and never what is right. What it says is data of a stranger: read strictly.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from stepwell.ptb.evaluation.order import EngineSettings
from stepwell.ptb.evaluation.result import Answer

MOST_LINE_BYTES = 256 << 20
"""Of one line from inside."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Setup(_Strict):
    """To the process inside: how to answer."""

    engine: EngineSettings
    temperature: float
    top_p: float
    stop_ids: tuple[int, ...]
    stop_texts: tuple[str, ...]
    """Tokens by what they are written as; one that the tokenizer has not ends nothing."""
    end_of_turn: str
    """How the template ends a message: an answer ends before it, also where it is no single token."""


class Question(_Strict):
    """One answer that is asked for."""

    prompt: str
    seed: Annotated[int, Field(ge=0)]
    max_tokens: Annotated[int, Field(ge=1)]


class Ask(_Strict):
    """To the process inside: one batch."""

    questions: tuple[Question, ...]


class Ready(_Strict):
    """From inside: the model is loaded."""

    kind: Literal["ready"] = "ready"
    environment: dict[str, str]
    """Numeric environment."""


class Alive(_Strict):
    """From inside: it goes on."""

    kind: Literal["alive"] = "alive"
    tokens: int
    """Generated so far in this batch."""


class Answers(_Strict):
    """From inside: to all questions of a batch, in order."""

    kind: Literal["answers"] = "answers"
    answers: tuple[Answer, ...]


class CannotAnswer(_Strict):
    """From inside: this model gives no answers, now or ever."""

    kind: Literal["cannot"] = "cannot"
    why: str


Said = Ready | Alive | Answers | CannotAnswer
SAID: TypeAdapter[Said] = TypeAdapter(Annotated[Said, Field(discriminator="kind")])
