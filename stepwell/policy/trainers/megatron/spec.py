"""What a rank of a Megatron trainer is told first."""

from collections.abc import Mapping
from dataclasses import dataclass

from stepwell.policy.trainers.megatron.layout import Layout, ModelShape
from stepwell.policy.trainers.rank_messages import RankSpec


@dataclass(frozen=True)
class MegatronSpec(RankSpec):
    """Rank 0 is the process that made the trainer, which computes nothing: rank n of Megatron is n + 1 here."""

    layout: Layout
    shape: ModelShape
    aliases: Mapping[str, str]
    """Further names of tied tensors, in the Hugging Face form."""
