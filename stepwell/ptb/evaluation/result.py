"""What came of an evaluation. No time stands in it: the same order on the same bytes gives the same bits."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from stepwell.events.canonical import digest_of_json

Points = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
AnswerEnd = Literal["stop", "length", "no_room"]
"""`stop`: the model ended its message; `length`: it was cut off at its limit of tokens; `no_room`: the question alone
fills the model's context, so there is no answer."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Answer(_Strict):
    """What the model said to one question."""

    text: str
    end: AnswerEnd
    prompt_tokens: Annotated[int, Field(ge=0)]
    tokens: Annotated[int, Field(ge=0)]
    """Generated, with the one that ended it."""


class ItemOutcome(_Strict):
    """One question, its answer, and what that is worth."""

    item: str
    """Id of the question."""
    seed: int
    """Of this answer."""
    answer: Answer
    value: float | None
    """0 to 1, below 0 where a rubric takes points; None if it could not be found out, which is not 0."""
    why: str
    """The reason, in words."""
    weight: float
    """Votes in the mean."""
    orders_agree: bool | None = None
    """Of a pair that was judged in both orders."""


class PassResult(_Strict):
    """One pass over the benchmark."""

    seed: int
    points: Points | None
    """None unless every answer is scored."""
    low: Points
    """If all unscored answers were worth nothing."""
    high: Points
    """And if they were all right."""
    unscored: Annotated[int, Field(ge=0)]
    disagreeing: Annotated[int, Field(ge=0)]
    """Pairs in which the judge preferred another answer when their order was turned."""
    items: tuple[ItemOutcome, ...]
    """In the publisher's order."""

    @property
    def cut_off(self) -> int:
        """Answers that were cut off at their limit of tokens."""
        return sum(one.answer.end == "length" for one in self.items)


class FailedAttempt(_Strict):
    """An attempt that died."""

    max_tokens: int
    """Limit that it ran under."""
    why: str


class UsedSampling(_Strict):
    """How answers were drawn."""

    temperature: Annotated[float, Field(gt=0)]
    top_p: Annotated[float, Field(gt=0, le=1)]
    greedy: bool
    """The most probable token each time; temperature and top_p then decide nothing."""
    unused: tuple[str, ...] = ()
    """Settings of the submission's `generation_config.json` that are not followed, by name."""


class SubmissionFacts(_Strict):
    """What the submitted folder holds."""

    kind: Literal["model", "adapter"]
    digest: str
    """Of names and contents of the files that the evaluation reads."""
    files: dict[str, str]
    """SHA-256 of each of them, by name."""
    ignored: dict[str, str]
    """Other files that may tell of something, and why they are not looked at: pickles, programs, templates."""
    notes: tuple[str, ...]
    """What was changed or passed over inside the files that are read."""
    sampling: UsedSampling
    stop: tuple[str, ...]
    """Tokens that end an answer: the template's end of turn, and those that the submission names."""


class EvaluationResult(_Strict):
    """All passes of one model over one benchmark."""

    base_model: str
    benchmark: str
    rows: int | None
    """As ordered: None for the whole benchmark."""
    data: str
    """Digest of the benchmark's files."""
    submission: SubmissionFacts | None
    """None if the folder was not accepted."""
    max_tokens: int | None
    """Limit of the attempt that gave the score."""
    died: tuple[FailedAttempt, ...] = ()
    """Attempts that died, in order."""
    passes: tuple[PassResult, ...] = ()
    failure: str | None = None
    """Why there is no score, if that is the submission's doing."""
    environment: dict[str, str] = {}
    """Numeric environment: bits are promised within an equal one."""

    @property
    def unscored(self) -> int:
        """Answers that could not be scored, in all passes."""
        return sum(one.unscored for one in self.passes)

    @property
    def points(self) -> float | None:
        """Mean of the passes; None if one has no score, or there is none."""
        points = [one.points for one in self.passes]
        known = [one for one in points if one is not None]
        return sum(known) / len(known) if points and len(known) == len(points) else None

    @property
    def digest(self) -> str:
        """Of all that it says but the environment: two evaluations that agree have the same."""
        return digest_of_json(self.model_dump(mode="json", exclude={"environment"}))
