"""What decides the bits of a step in the Megatron trainer."""

import importlib.metadata
import platform

import torch
import transformers

from stepwell.policy.trainers.megatron.device import processor
from stepwell.policy.trainers.megatron.requirement import MISSING, PACKAGE
from stepwell.policy.trainers.megatron.spec import MegatronSpec
from stepwell.policy.trainers.protocol import NumericEnvironment, UnsupportedModel


class MegatronEnvironment(NumericEnvironment):
    """What decides the bits of a step in this trainer."""

    megatron: str
    """Version of Megatron-core."""
    tensor_parallel: int
    """Parts into which tensors are cut."""
    expert_parallel: int
    """Parts into which experts are dealt."""


def environment_of(spec: MegatronSpec) -> MegatronEnvironment:
    """The environment of ranks on this machine.

    Raises:
        UnsupportedModel: the package is not installed.
    """
    try:
        version = importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError as error:
        raise UnsupportedModel(f'trainer.backend = "megatron", but {MISSING}') from error
    return MegatronEnvironment(
        torch=torch.__version__,
        transformers=transformers.__version__,
        platform=f"{platform.system()} {platform.machine()}",
        processor=processor(),
        threads=spec.threads,
        ranks=spec.layout.ranks,
        mkldnn=torch.backends.mkldnn.is_available(),
        compute_dtype=spec.compute_dtype,
        attention="sdpa, each sequence by itself",
        megatron=version,
        tensor_parallel=spec.layout.tensor,
        expert_parallel=spec.layout.expert,
    )
