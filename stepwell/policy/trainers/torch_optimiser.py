"""AdamW on float32 master weights, whatever the dtype that the model computes in."""

from collections.abc import Mapping

import torch
from torch import Tensor

from stepwell.policy.trainers.protocol import NonFinite
from stepwell.policy.weights import DigestMismatch, Weights
from stepwell.rl.config import OptimiserConfig

MOMENTS = ("exp_avg", "exp_avg_sq")
"""Names of AdamW's moments, each of the shape of its weights."""
STEP = "step"
"""Name of its count of updates, a scalar."""


class MasterWeights:
    """Float32 masters of a model's parameters, their gradients, and AdamW's moments.

    Where the model computes in float32 its parameters are the masters; else the masters are separate, gradients are
    added up in float32, and the model is overwritten with the rounded masters after each update.
    """

    def __init__(
        self,
        parameters: Mapping[str, torch.nn.Parameter],
        aliases: Mapping[str, str],
        compute_dtype: torch.dtype,
    ) -> None:
        """Takes over float32 parameters, which are rounded to `compute_dtype`.

        Args:
            parameters: of the model, by name, each tied one once. Those that want no gradient are frozen: weights
                without moments, which no update moves.
            aliases: further names of tied ones.
            compute_dtype: what the model computes in.
        """
        self._parameters = dict(parameters)
        self._aliases = dict(aliases)
        self._masters: dict[str, Tensor] = {}
        for name, parameter in self._parameters.items():
            self._masters[name] = parameter
            if compute_dtype != torch.float32:
                # Parameters only: buffers, such as rotary frequencies, stay float32.
                self._masters[name] = parameter.detach()
                parameter.data = parameter.detach().to(compute_dtype)
        self._trained = {name: self._masters[name] for name, parameter in parameters.items() if parameter.requires_grad}
        decayed = [master for master in self._trained.values() if master.dim() >= 2]
        others = [master for master in self._trained.values() if master.dim() < 2]
        self._adamw = torch.optim.AdamW(
            [{"params": group, "decays": decays} for group, decays in ((decayed, True), (others, False)) if group],
            fused=True,
        )
        for master in self._trained.values():
            self._adamw.state[master] = {
                STEP: torch.zeros((), dtype=torch.float32),
                **{moment: torch.zeros_like(master, requires_grad=False) for moment in MOMENTS},
            }

    def weights(self) -> Weights:
        """The master weights."""
        tensors = {name: master.detach() for name, master in self._masters.items()}
        return Weights(tensors=tensors, aliases=self._aliases)

    @property
    def trained(self) -> tuple[str, ...]:
        """Names of those that are not frozen, in the order of `gradients`."""
        return tuple(self._trained)

    def gradients(self) -> list[Tensor]:
        """The gradients of masters that are not frozen, in the order of the model; one without has a gradient of 0.

        Writing into them changes what `update` applies.
        """
        gradients: list[Tensor] = []
        for master in self._trained.values():
            if master.grad is None:
                master.grad = torch.zeros_like(master, requires_grad=False)
            elif not master.grad.is_contiguous():
                master.grad = master.grad.contiguous()
            gradients.append(master.grad)
        return gradients

    def collect(self) -> None:
        """Adds the model's gradients to the masters', after each backward pass."""
        for name, parameter in self._parameters.items():
            master = self._masters[name]
            if master is parameter or parameter.grad is None:
                continue
            gradient = parameter.grad.float()
            master.grad = gradient if master.grad is None else master.grad.add_(gradient)
            parameter.grad = None

    def discard(self) -> None:
        """Forgets all gradients."""
        for name, parameter in self._parameters.items():
            parameter.grad = None
            self._masters[name].grad = None

    def norm(self, divisor: float) -> float:
        """Divides the gradients and returns their global norm.

        Raises:
            NonFinite: in which tensors.
        """
        norms = [torch.linalg.vector_norm(gradient.div_(divisor)) for gradient in self.gradients()]
        norms_P = torch.stack(norms)
        if not bool(torch.isfinite(norms_P).all()):
            bad = [name for name, norm in zip(self._trained, norms, strict=True) if not bool(torch.isfinite(norm))]
            raise NonFinite(f"the gradient is not finite in {len(bad)} of {len(norms)} tensors, first in {bad[0]}")
        return float(torch.linalg.vector_norm(norms_P))

    @torch.no_grad()
    def update(self, config: OptimiserConfig, learning_rate: float, norm: float) -> None:
        """Clips the gradients, applies them, and forgets them.

        Args:
            config: of this step: moments, decay, clip.
            learning_rate: of this step, its schedule worked in.
            norm: the gradients' global norm.
        """
        limit = config.max_grad_norm
        if limit is not None and norm > limit:
            for gradient in self.gradients():
                gradient.mul_(limit / norm)
        for group in self._adamw.param_groups:
            group["lr"] = learning_rate
            group["betas"] = (config.beta1, config.beta2)
            group["eps"] = config.epsilon
            group["weight_decay"] = config.weight_decay if group["decays"] else 0.0
        self._adamw.step()
        self.discard()
        self._round_into_model()

    def state(self) -> Weights:
        """AdamW's moments and step counts as tensors."""
        tensors: dict[str, Tensor] = {}
        for name, master in self._trained.items():
            for key in (STEP, *MOMENTS):
                tensors[f"{name}.{key}"] = self._adamw.state[master][key]
        return Weights(tensors=tensors)

    @torch.no_grad()
    def restore(self, masters: Mapping[str, Tensor], state: Mapping[str, Tensor]) -> None:
        """Takes up masters and optimiser state.

        Raises:
            DigestMismatch: they are another model's; nothing was changed.
        """
        mine = dict(self.weights().tensors) | dict(self.state().tensors)
        theirs = dict(masters) | dict(state)
        if {name: tensor.shape for name, tensor in mine.items()} != {name: t.shape for name, t in theirs.items()}:
            differing = sorted(set(mine) ^ set(theirs)) or [n for n in mine if mine[n].shape != theirs[n].shape]
            raise DigestMismatch(f"the checkpoint is another model's: it differs in {differing[:3]}")
        for name, tensor in theirs.items():
            mine[name].copy_(tensor)
        self.discard()
        self._round_into_model()

    @torch.no_grad()
    def _round_into_model(self) -> None:
        for name, parameter in self._parameters.items():
            if self._masters[name] is not parameter:
                parameter.copy_(self._masters[name])
