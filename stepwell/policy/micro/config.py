"""Settings of the micro policy: its tokenizer and model, and the supervised warm-up that makes version 0."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class MicroModelConfig(BaseModel):
    """Shape of the micro policy: a decoder of the Qwen3 kind."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    vocabulary: int = Field(default=1024, ge=300)
    """Entries of the byte-level BPE, special tokens included."""
    hidden: int = Field(default=128, ge=16)
    """Width of the residual stream."""
    layers: int = Field(default=4, ge=1)
    """Decoder layers."""
    heads: int = Field(default=4, ge=1)
    """Query heads."""
    kv_heads: int = Field(default=2, ge=1)
    """Key and value heads; divides `heads`."""
    head_dim: int = Field(default=32, ge=32)
    """Width of a head; 32 is the least that the attention kernels of vLLM serve."""
    feed_forward: int = Field(default=192, ge=16)
    """Width of the gated feed-forward layer."""
    context: int = Field(default=512, ge=128)
    """Most tokens of an episode."""

    @model_validator(mode="after")
    def _heads_share_evenly(self) -> Self:
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads is {self.kv_heads}, which does not divide heads, {self.heads}")
        return self


class ExpertConfig(BaseModel):
    """How good the demonstrations are. The expert is unsure of operators and their like: there its usual mistake is
    more frequent than the right repair, so that a cautious policy is wrong, and one that explores is often right."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sure: float = Field(default=0.97, ge=0, le=1)
    """Chance of the right repair where the expert is sure."""
    unsure: float = Field(default=0.28, ge=0, le=1)
    """Chance of the right repair where it is unsure."""
    tests: float = Field(default=0.1, ge=0, le=1)
    """Share of demonstrations that run the visible tests after the repair, and repair again what still fails."""
    slips: float = Field(default=0.05, ge=0, le=1)
    """Share of demonstrations that first name a line without the token; only the recovery is learned."""


class WarmUpConfig(BaseModel):
    """The supervised warm-up: from random weights to version 0."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: MicroModelConfig = MicroModelConfig()
    """Shape of the policy."""
    expert: ExpertConfig = ExpertConfig()
    """How good the demonstrations are."""
    steps: int = Field(default=1200, ge=1)
    """Optimiser steps."""
    demonstrations: int = Field(default=16, ge=1)
    """Demonstrations in a step."""
    muon_learning_rate: float = Field(default=0.02, gt=0)
    """Peak learning rate of Muon, which moves the hidden matrices."""
    adamw_learning_rate: float = Field(default=3e-3, gt=0)
    """Peak learning rate of AdamW, which moves embeddings and norms."""
    rise: int = Field(default=50, ge=1)
    """Steps over which the learning rates rise; then they fall linearly to a twentieth."""
    observation_weight: float = Field(default=0.05, ge=0, le=1)
    """Weight in the loss of a token of the issue or of an observation, against 1 of an action's."""
    threads: int = Field(default=1, ge=1)
    """Processor threads; part of the numeric environment in which the result is the same to the bit."""
