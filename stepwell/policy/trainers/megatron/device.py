"""What a rank computes on."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Device:
    """A rank's device and how ranks on such devices talk."""

    device: torch.device
    backend: str
    """Of torch.distributed."""


def open_device(rank: int) -> Device:
    """The rank's GPU, taken in turn; where there is none, the CPU, which Megatron is then made to accept."""
    if torch.cuda.is_available():
        device = torch.device("cuda", rank % torch.cuda.device_count())
        torch.cuda.set_device(device)
        return Device(device, "nccl")
    from stepwell.policy.trainers.megatron.cpu_shims import install_cpu_shims

    install_cpu_shims()
    return Device(torch.device("cpu"), "gloo")


def processor() -> str:
    """What decides the bits of this machine's arithmetic: its GPU, or the vector instructions that torch uses."""
    if torch.cuda.is_available():
        return torch.cuda.get_device_name(0)
    return torch.backends.cpu.get_cpu_capability()
