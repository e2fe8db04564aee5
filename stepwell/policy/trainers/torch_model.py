"""A Hugging Face causal model as a trainer needs it: log-probabilities of chosen tokens, and nothing else computed.

Shape suffixes: B rows, T columns, N chosen tokens row after row, H hidden size, V vocabulary.

Rows are padded on the right and no padding mask is given: under causal attention nothing that counts sees the padding.
"""

import math
import platform
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel

from stepwell.policy.trainers.protocol import ComputeDtype, NumericEnvironment, UnsupportedModel
from stepwell.policy.trainers.router_names import NO_ROUTER, ROUTER
from stepwell.policy.weights import CONFIG_FILE, WeightsError

ATTENTION_SCORES = 1 << 28
"""Most attention scores (rows, heads, layers, columns squared) for which attention is plain matrix products, whose
backward is up to twice as fast on a CPU as the fused kernel's but keeps about 10 bytes a score."""

_TOLERANCE_NATS = 1e-3
"""Between our log-probabilities and the model's own, at float32."""


class TorchModel:
    """A causal model, at whatever dtype its parameters have."""

    def __init__(self, model: PreTrainedModel) -> None:
        self.model = model
        config: Any = model.config.get_text_config()
        self._scores_per_square = int(config.num_hidden_layers) * int(config.num_attention_heads)

    @classmethod
    def from_folder(cls, folder: Path) -> "TorchModel":
        """Loads a Hugging Face folder in float32.

        Raises:
            WeightsError: the folder cannot be loaded.
            UnsupportedModel: the model does something between its hidden states and its log-probabilities that this
                trainer leaves out.
        """
        if not (folder / CONFIG_FILE).is_file():
            raise WeightsError(f"{folder} is no model folder: wanted {CONFIG_FILE} and model.safetensors in it")
        transformers.utils.logging.disable_progress_bar()
        try:
            answer: Any = AutoModelForCausalLM.from_pretrained(
                folder, dtype=torch.float32, local_files_only=True, use_safetensors=True, output_loading_info=True
            )
        except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
            raise WeightsError(f"{folder} cannot be loaded: {error}") from error
        model, info = answer
        if info["missing_keys"] or info["mismatched_keys"]:
            raise WeightsError(
                f"{folder} does not hold the model of its {CONFIG_FILE}: missing {sorted(info['missing_keys'])}, "
                f"of another shape {sorted(info['mismatched_keys'])}"
            )
        # Evaluation mode: dropout would make the trainer's log-probabilities differ from the engine's.
        model.eval()
        loaded = cls(model)
        loaded._check_own_logits()
        return loaded

    def freeze_router(self) -> None:
        """Lets no gradient reach the routers of a mixture of experts.

        Raises:
            UnsupportedModel: the model has none.
        """
        routers = [parameter for name, parameter in self.model.named_parameters() if name.endswith(ROUTER)]
        if not routers:
            raise UnsupportedModel(NO_ROUTER)
        for router in routers:
            router.requires_grad_(False)

    def logprobs(self, ids_BT: Tensor, chosen_N: Tensor, temperature: float) -> Tensor:
        """Log-probability, at a temperature, of chosen tokens given those before them in their row.

        Args:
            ids_BT: token ids.
            chosen_N: indices into the flattened `ids_BT`; never the first column.
            temperature: divides the logits.
        """
        self._choose_attention(*ids_BT.shape)
        hidden_BTH: Tensor = self.model.base_model(input_ids=ids_BT, use_cache=False).last_hidden_state
        hidden_NH = hidden_BTH.flatten(0, 1).index_select(0, chosen_N - 1)
        head: Any = self.model.get_output_embeddings()
        logits_NV: Tensor = head(hidden_NH).float() / temperature
        return -torch.nn.functional.cross_entropy(logits_NV, ids_BT.flatten()[chosen_N], reduction="none")

    def positions(self, ids_BT: Tensor, chosen_N: Tensor) -> int:
        """How many positions `logprobs` sends through the model: all, padding too."""
        del chosen_N
        return ids_BT.numel()

    def environment(self, *, threads: int, compute_dtype: ComputeDtype) -> NumericEnvironment:
        """What decides the bits of this model's arithmetic in this process."""
        return NumericEnvironment(
            torch=torch.__version__,
            transformers=transformers.__version__,
            platform=f"{platform.system()} {platform.machine()}",
            processor=torch.backends.cpu.get_cpu_capability(),
            threads=threads,
            mkldnn=torch.backends.mkldnn.is_available(),
            compute_dtype=compute_dtype,
            attention=f"eager up to {ATTENTION_SCORES} scores, then sdpa",
        )

    def _choose_attention(self, rows: int, columns: int) -> None:
        few = rows * columns * columns * self._scores_per_square <= ATTENTION_SCORES
        wanted = "eager" if few else "sdpa"
        if self.model.config._attn_implementation != wanted:  # pyright: ignore[reportPrivateUsage]
            self.model.set_attn_implementation(wanted)

    @torch.no_grad()
    def _check_own_logits(self) -> None:
        """Some architectures scale or cap their logits after the head; `logprobs` would leave that out."""
        config: Any = self.model.config.get_text_config()
        ids_BT = torch.arange(1, 9).remainder(int(config.vocab_size))[None]
        ours_N = self.logprobs(ids_BT, torch.arange(1, 8), 1.0)
        answer: Any = self.model(input_ids=ids_BT, use_cache=False)
        logits_TV: Tensor = answer.logits[0, :-1].float()
        own_N = logits_TV.log_softmax(-1).gather(1, ids_BT[0, 1:, None])[:, 0]
        difference = float((ours_N - own_N).abs().max())
        if math.isnan(difference):
            raise WeightsError(f"the log-probabilities of {type(self.model).__name__} are no numbers: damaged weights")
        if difference > _TOLERANCE_NATS:
            raise UnsupportedModel(
                f"{type(self.model).__name__} changes its logits after the output layer (log-probabilities differ by "
                f"{difference:.3g} nats): this trainer would compute another policy than the engines"
            )
