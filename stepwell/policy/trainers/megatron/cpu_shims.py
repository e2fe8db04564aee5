"""What Megatron-core 0.16 takes for granted of a GPU, answered by the CPU. Only a rank process without a GPU imports
this, once, before it makes a model; nothing is put back, since the process does nothing else.
"""

import torch


def install_cpu_shims() -> None:
    """Makes `torch.cuda.current_device` name the CPU: Megatron asks it where to put tensors."""
    torch.cuda.current_device = _cpu


def _cpu() -> torch.device:  # pyright: ignore[reportReturnType]
    return torch.device("cpu")
