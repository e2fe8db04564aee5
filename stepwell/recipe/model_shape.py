"""The published configuration of a model: what a plan reckons with while the model itself is not at hand."""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import Field, model_validator

from stepwell.recipe.sections import Section

_LINEAR = ("linear_key_heads", "linear_value_heads", "linear_key_dim", "linear_value_dim", "linear_kernel")
_EXPERTS = ("experts", "experts_per_token", "expert_feed_forward", "shared_feed_forward")
_PUBLISHED = {
    "layers": "num_hidden_layers",
    "hidden": "hidden_size",
    "vocabulary": "vocab_size",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "output_gate": "attn_output_gate",
    "full_attention_every": "full_attention_interval",
    "linear_key_heads": "linear_num_key_heads",
    "linear_value_heads": "linear_num_value_heads",
    "linear_key_dim": "linear_key_head_dim",
    "linear_value_dim": "linear_value_head_dim",
    "linear_kernel": "linear_conv_kernel_dim",
    "feed_forward": "intermediate_size",
    "experts": "num_experts",
    "experts_per_token": "num_experts_per_tok",
    "expert_feed_forward": "moe_intermediate_size",
    "shared_feed_forward": "shared_expert_intermediate_size",
    "tied": "tie_word_embeddings",
}
"""Our keys, and those of a Hugging Face `config.json`."""


class ModelShape(Section):
    """A decoder of the Qwen3 kind: grouped-query attention in every layer or in every n-th with linear attention (Gated
    DeltaNet) between, and a dense gated feed-forward layer or experts with a shared one beside them."""

    source: str = Field(min_length=1)
    """Where the figures were read."""
    unconfirmed: tuple[str, ...] = ()
    """Keys whose figures have no confirmation; the plan says so."""
    layers: int = Field(ge=1)
    """Decoder layers."""
    hidden: int = Field(ge=1)
    """Width of the residual stream."""
    vocabulary: int = Field(ge=1)
    """Rows of the embedding."""
    heads: int = Field(ge=1)
    """Query heads."""
    kv_heads: int = Field(ge=1)
    """Key and value heads."""
    head_dim: int = Field(ge=1)
    """Width of a head."""
    output_gate: bool = False
    """Whether attention has a gate as wide as its queries."""
    full_attention_every: int = Field(default=1, ge=1)
    """Every so many-th layer has full attention; the others have linear attention."""
    linear_key_heads: int | None = Field(default=None, ge=1)
    """Query and key heads of linear attention. This and the next four: with `full_attention_every` above 1 only."""
    linear_value_heads: int | None = Field(default=None, ge=1)
    """Value heads of linear attention."""
    linear_key_dim: int | None = Field(default=None, ge=1)
    """Width of a key head."""
    linear_value_dim: int | None = Field(default=None, ge=1)
    """Width of a value head."""
    linear_kernel: int | None = Field(default=None, ge=1)
    """Positions that the convolution before linear attention sees."""
    feed_forward: int | None = Field(default=None, ge=1)
    """Width of the dense feed-forward layer; without experts only."""
    experts: int | None = Field(default=None, ge=1)
    """Routed experts of a layer. This and the next three: all or none."""
    experts_per_token: int | None = Field(default=None, ge=1)
    """Experts that a token is sent to."""
    expert_feed_forward: int | None = Field(default=None, ge=1)
    """Width of an expert."""
    shared_feed_forward: int | None = Field(default=None, ge=0)
    """Width of the expert that sees every token; 0: there is none."""
    tied: bool = False
    """Whether the head is the embedding."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads is {self.kv_heads}, which does not divide heads, {self.heads}")
        if self.layers % self.full_attention_every:
            raise ValueError(
                f"full_attention_every is {self.full_attention_every}, which does not divide layers, {self.layers}"
            )
        _all_or_none(self, _LINEAR, wanted=self.full_attention_every > 1, when="full_attention_every above 1")
        _all_or_none(self, _EXPERTS, wanted=self.feed_forward is None, when="no feed_forward")
        if self.experts is not None and (self.experts_per_token or 0) > self.experts:
            raise ValueError(f"experts_per_token is {self.experts_per_token}, of {self.experts} experts")
        unknown = sorted(set(self.unconfirmed).difference(_PUBLISHED))
        if unknown:
            raise ValueError(f"unconfirmed names {unknown[0]!r}, which is no figure of a shape")
        return self

    @property
    def full_attention_layers(self) -> int:
        """Layers that keep keys and values of every token."""
        return self.layers // self.full_attention_every


def differences(shape: ModelShape, config: Mapping[str, Any]) -> list[str]:
    """In which figures a `config.json` differs from a shape, each in words; those that it does not name are taken as
    they are."""
    text: Mapping[str, Any] = config.get("text_config") or config
    found = {key: text.get(name) for key, name in _PUBLISHED.items()}
    ours = {key: getattr(shape, key) for key in _PUBLISHED}
    return [
        f"policy.shape.{key} is {ours[key]}, config.json has {_PUBLISHED[key]} = {value}"
        for key, value in found.items()
        if value is not None and ours[key] is not None and value != ours[key]
    ]


def _all_or_none(shape: ModelShape, keys: tuple[str, ...], *, wanted: bool, when: str) -> None:
    for key in keys:
        if wanted and getattr(shape, key) is None:
            raise ValueError(f"{key} is missing: with {when} it is needed")
        if not wanted and getattr(shape, key) is not None:
            raise ValueError(f"{key} would do nothing: it is for {when}")
