"""Megatron's GPT model as a trainer needs it: log-probabilities of chosen tokens, and nothing else computed.

Shape suffixes: B rows, T columns, N chosen tokens row after row, P packed positions, H hidden size, V this rank's part
of the vocabulary.

Rows are packed one after another, each up to its last chosen token, without padding. With several parts a replica works
sequence-parallel: outside attention and feed-forward layers each part has its share of the positions, so that every
tensor that is whole in all ranks has a gradient which is a sum over them.
"""

from typing import Any

import torch
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.packed_seq_params import PackedSeqParams
from megatron.core.tensor_parallel.cross_entropy import vocab_parallel_cross_entropy
from megatron.core.tensor_parallel.mappings import gather_from_sequence_parallel_region
from megatron.core.tensor_parallel.random import initialize_rng_tracker
from megatron.core.transformer.spec_utils import ModuleSpec
from megatron.core.transformer.transformer_block import TransformerBlockSubmodules
from megatron.core.transformer.transformer_config import TransformerConfig
from torch import Tensor

from stepwell.policy.trainers.megatron.layout import Experts, Layout, ModelShape
from stepwell.policy.trainers.megatron.packed_attention import PackedAttention
from stepwell.policy.trainers.megatron.root_mean_square import RootMeanSquare
from stepwell.policy.trainers.megatron.router import PlainRouter


class MegatronModel:
    """One rank's part of a model. Every rank of a replica must make the same calls with the same arguments."""

    def __init__(self, shape: ModelShape, layout: Layout, device: torch.device) -> None:
        """Makes the model, its weights not filled in; torch.distributed and Megatron's groups must be there."""
        self._tensor_parts = layout.tensor
        self._device = device
        # The one without state: nothing here draws random numbers, and the other kind wants a GPU.
        initialize_rng_tracker(inference_rng_tracker=True, force_reset=True)
        self.model = GPTModel(
            config=_config(shape, layout),
            # Either is taken, which its annotation does not say.
            transformer_layer_spec=_layers(shape),  # pyright: ignore[reportArgumentType]
            vocab_size=shape.vocabulary,
            max_sequence_length=shape.context,
            position_embedding_type="rope",
            rotary_base=shape.rope_base,  # pyright: ignore[reportArgumentType]  # annotated int, used as a float
            share_embeddings_and_output_weights=shape.tied,
            parallel_output=True,
        ).to(device)
        # Evaluation mode: dropout would make the trainer's log-probabilities differ from the engine's.
        self.model.eval()
        self._needed_P: Tensor | None = None
        head: Any = self.model.output_layer
        # It is given whole positions, picked out by the hook, not a share of them.
        head.sequence_parallel = False
        head.allreduce_dgrad = layout.tensor > 1
        head.register_forward_pre_hook(self._pick)

    def logprobs(self, ids_BT: Tensor, chosen_N: Tensor, temperature: float) -> Tensor:
        """Log-probability, at a temperature, of chosen tokens given those before them in their row; on the CPU.

        Args:
            ids_BT: token ids.
            chosen_N: indices into the flattened `ids_BT`, ascending; never the first column.
            temperature: divides the logits.
        """
        columns = ids_BT.shape[1]
        lengths_B = _lengths(chosen_N, *ids_BT.shape)
        starts_B = lengths_B.cumsum(0) - lengths_B
        row_N = chosen_N // columns
        self._needed_P = (starts_B[row_N] + chosen_N % columns - 1).to(self._device)
        kept = [ids_BT[row, :length] for row, length in enumerate(lengths_B.tolist()) if length]
        padding = -int(lengths_B.sum()) % self._tensor_parts
        if padding:
            kept.append(ids_BT.new_zeros(padding))
        answer: Any = self.model(
            torch.cat(kept)[None].to(self._device),
            torch.cat([torch.arange(len(ids)) for ids in kept])[None].to(self._device),
            None,
            packed_seq_params=_packed([len(ids) for ids in kept], self._device),
        )
        logits_NV: Tensor = answer[0].float() / temperature
        target_N = ids_BT.flatten()[chosen_N].to(self._device)
        # It overwrites the logits, which are this function's own.
        losses: Any = vocab_parallel_cross_entropy(logits_NV, target_N)
        return -losses.cpu()

    def positions(self, ids_BT: Tensor, chosen_N: Tensor) -> int:
        """How many positions `logprobs` sends through the model."""
        kept = int(_lengths(chosen_N, *ids_BT.shape).sum())
        return kept + -kept % self._tensor_parts

    def _pick(self, _head: object, given: tuple[Tensor]) -> tuple[Tensor]:
        """Keeps of the hidden states (P, 1, H) those that predict a chosen token: (N, 1, H)."""
        (hidden,) = given
        if self._tensor_parts > 1:
            # Each part of the output layer gives back the whole gradient, of which a rank needs its share.
            hidden = gather_from_sequence_parallel_region(hidden, tensor_parallel_output_grad=False)
        assert self._needed_P is not None
        return (hidden.index_select(0, self._needed_P),)


def _lengths(chosen_N: Tensor, rows: int, columns: int) -> Tensor:
    """Positions of each row that its chosen tokens depend on; what comes after the last of them does not matter."""
    lengths_B = torch.zeros(rows, dtype=torch.int64)
    return lengths_B.scatter_reduce_(0, chosen_N // columns, chosen_N % columns, "amax")


def _packed(lengths: list[int], device: torch.device) -> PackedSeqParams:
    ends = torch.tensor([0, *lengths]).cumsum(0).to(device, torch.int32)
    return PackedSeqParams(
        qkv_format="thd",
        cu_seqlens_q=ends,
        cu_seqlens_kv=ends,
        max_seqlen_q=max(lengths),
        max_seqlen_kv=max(lengths),
    )


def _config(shape: ModelShape, layout: Layout) -> TransformerConfig:
    mixture = _mixture(shape.experts, layout) if shape.experts is not None else {}
    return TransformerConfig(
        num_layers=shape.layers,
        hidden_size=shape.hidden_size,
        num_attention_heads=shape.heads,
        num_query_groups=shape.kv_heads,
        kv_channels=shape.head_size,
        ffn_hidden_size=shape.ffn_size,
        layernorm_epsilon=shape.norm_epsilon,
        normalization="RMSNorm",
        qk_layernorm=shape.qk_norm,
        gated_linear_unit=True,
        activation_func=torch.nn.functional.silu,
        add_bias_linear=False,
        attention_dropout=0.0,
        hidden_dropout=0.0,
        tensor_model_parallel_size=layout.tensor,
        sequence_parallel=layout.tensor > 1,
        # Weights are made on the CPU and left unfilled: every one of them is read from a folder.
        use_cpu_initialization=True,
        perform_initialization=False,
        # No fused kernels: they are part of what would decide the bits, and need a GPU.
        bias_dropout_fusion=False,
        bias_activation_fusion=False,
        masked_softmax_fusion=False,
        gradient_accumulation_fusion=False,
        apply_rope_fusion=False,
        persist_layer_norm=False,
        **mixture,
    )


def _mixture(experts: Experts, layout: Layout) -> dict[str, Any]:
    return {
        "num_moe_experts": experts.count,
        "moe_router_topk": experts.active,
        "moe_ffn_hidden_size": experts.ffn_size,
        # Megatron's softmax over the chosen alone is transformers' softmax over all, made to sum to 1.
        "moe_router_pre_softmax": not experts.normalised,
        "moe_router_load_balancing_type": "none",
        "moe_token_dispatcher_type": "allgather",
        "moe_grouped_gemm": False,
        "expert_model_parallel_size": layout.expert,
        "expert_tensor_parallel_size": 1,
    }


def _layers(shape: ModelShape) -> TransformerBlockSubmodules:
    mixtures = shape.experts.layers if shape.experts is not None else frozenset[int]()
    layers: list[ModuleSpec] = []
    for layer in range(shape.layers):
        count = shape.experts.count if shape.experts is not None and layer in mixtures else None
        spec: Any = get_gpt_layer_local_spec(
            num_experts=count, qk_layernorm=shape.qk_norm, normalization="RMSNorm", moe_grouped_gemm=False
        )
        spec.submodules.input_layernorm = RootMeanSquare
        spec.submodules.pre_mlp_layernorm = RootMeanSquare
        attention = spec.submodules.self_attention.submodules
        attention.core_attention = PackedAttention
        if count is not None:
            spec.submodules.mlp.submodules.router = PlainRouter
        if shape.qk_norm:
            attention.q_layernorm = attention.k_layernorm = RootMeanSquare
        layers.append(spec)
    norm: Any = RootMeanSquare
    return TransformerBlockSubmodules(layer_specs=layers, layer_norm=norm)
