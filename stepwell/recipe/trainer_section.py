"""What a recipe says of the trainer."""

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from stepwell.policy.trainers.megatron.layout import Layout
from stepwell.recipe.sections import Section
from stepwell.rl.config import PackingConfig

_MEGATRON_ONLY = ("tensor_parallel", "data_parallel", "expert_parallel")


class TrainerSection(Section):
    """The trainer."""

    backend: Literal["torch", "megatron"] = "torch"
    """What computes a step (docs/trainers.md). `torch`: any Hugging Face causal model, whole in each process;
    `megatron`: llama, qwen3 and qwen3-moe, cut among processes, on GPUs where there are some."""
    threads: int = Field(default=1, ge=1)
    """CPU threads of one operation."""
    compute_dtype: Literal["float32", "bfloat16"] = "float32"
    """Of activations and exported weights; master weights are float32."""
    packing: PackingConfig = PackingConfig()
    """How a batch is cut."""
    ranks: int = Field(default=1, ge=1)
    """Processes that share a step's micro-batches, each with the whole model and `threads` threads; part of what
    decides the bits. Refused with `megatron`, whose processes are tensor_parallel times data_parallel."""
    rank_timeout_s: float | None = Field(default=None, gt=0)
    """Longest that a rank may take for one micro-batch, or for an exchange of gradients, before it counts as hung; 60
    unless given. Refused with one process."""
    tensor_parallel: int | None = Field(default=None, ge=1)
    """Processes among which each tensor is cut; 1 unless given. Divides the model's heads, feed-forward layers and
    vocabulary. Refused with `torch`, as the next two."""
    data_parallel: int | None = Field(default=None, ge=1)
    """Copies of the model, among which micro-batches are dealt; 1 unless given."""
    expert_parallel: int | None = Field(default=None, ge=1)
    """Processes among which the experts of a layer are dealt, all of one copy; 1 unless given. Divides
    `tensor_parallel` and the number of experts."""
    freeze_router: bool = False
    """The routers of a mixture of experts never move. Refused for a model without."""

    @model_validator(mode="before")
    @classmethod
    def _fill_dependent_defaults(cls, raw: Any) -> Any:
        if not isinstance(raw, dict):
            return raw
        filled: dict[str, Any] = dict(raw)
        megatron = filled.get("backend") == "megatron"
        for key in _MEGATRON_ONLY if megatron else ():
            if filled.get(key) is None:
                filled[key] = 1
        if filled.get("rank_timeout_s") is None and (megatron or filled.get("ranks", 1) != 1):
            filled["rank_timeout_s"] = 60.0
        return filled

    @model_validator(mode="after")
    def _refuse_useless(self) -> Self:
        if self.backend == "torch":
            for key in _MEGATRON_ONLY:
                if getattr(self, key) is not None:
                    raise ValueError(
                        f'{key} would do nothing: with backend = "torch" every process has the whole model; set '
                        'backend = "megatron", or ranks for processes that share the micro-batches'
                    )
            if self.ranks == 1 and self.rank_timeout_s is not None:
                raise ValueError("rank_timeout_s would do nothing: with ranks = 1 the trainer is one process")
        if self.backend == "megatron" and self.ranks != 1:
            raise ValueError(
                f'ranks is {self.ranks}, which would do nothing: with backend = "megatron" the processes are '
                "tensor_parallel times data_parallel; set data_parallel"
            )
        if self.expert_parallel is not None and (self.tensor_parallel or 1) % self.expert_parallel:
            raise ValueError(
                f"expert_parallel is {self.expert_parallel}, which does not divide tensor_parallel, "
                f"{self.tensor_parallel}: the experts of a layer are dealt within one copy of the model"
            )
        return self

    @property
    def layout(self) -> Layout | None:
        """How Megatron lays the model out; None with `torch`."""
        if self.backend == "torch":
            return None
        return Layout(self.tensor_parallel or 1, self.data_parallel or 1, self.expert_parallel or 1)
