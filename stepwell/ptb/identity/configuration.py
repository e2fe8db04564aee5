"""The fields of `config.json` that make an architecture, against the base's."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from stepwell.ptb.identity.tensors import UnreadableModel

CORE_FIELDS = (
    "model_type",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "intermediate_size",
    "head_dim",
)
"""Must be equal (PostTrainBench's model_identity_check)."""
ADVISORY_FIELDS = ("architectures", "vocab_size")
"""A difference is told: a tokenizer with more tokens, a wrapper class."""


@dataclass(frozen=True)
class FieldDifference:
    """One field that differs."""

    field: str
    base: object
    submitted: object
    is_core: bool
    """Whether it decides."""


def read_config(folder: Path) -> Mapping[str, object]:
    """The configuration of a folder, with a text part's fields on top and defaults put in.

    Raises:
        UnreadableModel: there is none, or it is no JSON object.
    """
    path = folder / "config.json"
    try:
        loaded: object = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UnreadableModel(f"cannot read {path}: {error}; wanted a model's configuration") from error
    if not isinstance(loaded, Mapping):
        raise UnreadableModel(f"{path} holds a {type(loaded).__name__}: wanted an object")
    config = dict(cast("Mapping[str, object]", loaded))
    if isinstance(text := config.get("text_config"), Mapping):
        inner = dict(cast("Mapping[str, object]", text))
        config = {
            **inner,
            **{key: value for key, value in config.items() if key not in CORE_FIELDS or key not in inner},
        }
    config["model_type"] = str(config.get("model_type", "")).removesuffix("_text")
    heads, hidden = config.get("num_attention_heads"), config.get("hidden_size")
    config.setdefault("num_key_value_heads", heads)
    if config.get("head_dim") is None and isinstance(heads, int) and isinstance(hidden, int) and heads:
        config["head_dim"] = hidden // heads
    return config


def config_differences(base: Mapping[str, object], submitted: Mapping[str, object]) -> tuple[FieldDifference, ...]:
    """The fields that differ, core ones first."""
    return tuple(
        FieldDifference(field, base.get(field), submitted.get(field), field in CORE_FIELDS)
        for field in (*CORE_FIELDS, *ADVISORY_FIELDS)
        if base.get(field) != submitted.get(field)
    )
