"""What is to be evaluated, and how: everything that the result depends on but the bytes themselves."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Positive = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class EngineSettings(_Strict):
    """What generates the answers. All but threads and batches are part of the comparability key."""

    kind: Literal["transformers", "vllm"] = "transformers"
    """`transformers` gives equal bits in equal numeric environments; `vllm`, for GPUs, promises none."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Of the arithmetic; weights in another float type are converted."""
    device: Literal["cpu", "cuda"] = "cpu"
    threads: Positive = 1
    """Of one operation on a CPU: another number may give other bits."""
    at_once: Positive = 16
    """Answers that are generated in one batch. Items are dealt to batches in their order, so another number may give
    other bits."""
    max_context: Positive = 32768
    """Most tokens of question and answer together, where the model has as many positions."""


class EvaluationLimits(_Strict):
    """Bounds of the sandbox and of its patience. They decide no score but that of a model that breaks them."""

    memory_bytes: Positive = 32 << 30
    """Of all processes in the sandbox together, where this process may make control groups."""
    silence_s: Seconds = 900.0
    """Longest time without a token or a question read: a model that is silent for so long is ended."""
    attempt_s: Seconds = 8 * 3600.0
    """Wall clock of one attempt at all passes over the benchmark."""
    tries: Positive = 2
    """Attempts under each limit of tokens, where one died."""


class EvaluationOrder(_Strict):
    """One model, one benchmark: one cell."""

    model: Path
    """Folder that was submitted: a whole model, or an adapter for the base."""
    links: Literal["inside", "anywhere"] = "inside"
    """Where links in it may lead: a submission's not out of it; a folder that is trusted may be made of them, as a
    cache of Hugging Face's is."""
    base_model: Annotated[str, Field(min_length=1)]
    """Name of the base model that the trial was started with. The template follows from it, and from nothing else."""
    base: Path | None = None
    """Folder of the base model. An adapter is put on it; and where a submission's evaluation dies each time, it is
    evaluated instead: if it dies too the machine is at fault, and there is no result."""
    benchmark: Annotated[str, Field(min_length=1)]
    files: dict[str, Path]
    """Path of each of the benchmark's files, by name."""
    rows: Positive | None = None
    """Only the first rows of the benchmark, for rehearsals; None for all of it, and no other number of rows."""
    seeds: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)]
    """Of the passes."""
    max_tokens: Annotated[tuple[Positive, ...], Field(min_length=1)]
    """Of one answer: the first limit, and those that are tried where an evaluation under the one before died."""
    engine: EngineSettings = EngineSettings()
    limits: EvaluationLimits = EvaluationLimits()

    @model_validator(mode="after")
    def _agrees(self) -> "EvaluationOrder":
        if len(set(self.seeds)) != len(self.seeds):
            raise ValueError(f"a seed stands twice in {self.seeds}: each pass has one of its own")
        if any(later >= earlier for earlier, later in zip(self.max_tokens, self.max_tokens[1:], strict=False)):
            raise ValueError(f"max_tokens is {self.max_tokens}: each limit must be below the one before")
        return self
