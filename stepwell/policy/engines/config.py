"""What a recipe says of its engines."""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

EngineKind = Literal["transformers", "vllm"]


class EngineConfig(BaseModel):
    """Settings of one generation engine; every engine of a run has the same."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: EngineKind = "transformers"
    """`transformers` runs any Hugging Face causal model in the worker's own process; `vllm` starts vLLM's server."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Of the weights and the key-value cache while generating."""
    device: Literal["cpu", "cuda"] = "cpu"
    """Where the model lies. For `vllm` it must be what the installed wheel is built for."""
    threads: int = Field(default=1, ge=1)
    """CPU threads for the model's arithmetic."""
    max_context: int = Field(default=1024, ge=2)
    """Most tokens of a request: context and generation together."""
    max_batch: int = Field(default=128, ge=1)
    """Most requests generated at once; more wait."""
    idle_rows: int | None = Field(default=None, ge=0)
    """`transformers` only: rows of key-value cache beyond `max_batch`, which keep the prefixes of rollouts that are
    at their tools. Unset, as many as `max_batch`."""
    reuse_prefixes: bool | None = None
    """`transformers` only: whether a request takes over what a row holds of its context. If not, with `max_batch` 1,
    the bits of a generation depend on its own request alone. Unset, true."""
    kv_cache_mib: int | None = Field(default=None, ge=1)
    """`vllm` only, in MiB: its key-value cache. Unset, 512 on a CPU, and vLLM's own share of the memory on a GPU."""
    tensor_parallel: int | None = Field(default=None, ge=1)
    """`vllm` only: GPUs a replica is split over. Unset, 1."""
    start_timeout_s: float | None = Field(default=None, gt=0)
    """`vllm` only, in seconds: how long the server may take to answer. Unset, 600."""

    @model_validator(mode="after")
    def _refuse_what_does_nothing(self) -> Self:
        foreign = {
            "transformers": ("kv_cache_mib", "tensor_parallel", "start_timeout_s"),
            "vllm": ("idle_rows", "reuse_prefixes"),
        }[self.kind]
        idle = [name for name in foreign if getattr(self, name) is not None]
        if idle:
            raise ValueError(f"{', '.join(idle)} would do nothing with kind = {self.kind!r}; remove it")
        return self
