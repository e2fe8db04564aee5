"""Identity: whether a submitted model was made of the base, by its configuration and by its weights."""

from stepwell.ptb.identity.check import check_identity
from stepwell.ptb.identity.report import IdentityReport, LayerLine, Origin, TensorEvidence, Verdict
from stepwell.ptb.identity.tensors import UnreadableModel

__all__ = [
    "IdentityReport",
    "LayerLine",
    "Origin",
    "TensorEvidence",
    "UnreadableModel",
    "Verdict",
    "check_identity",
]
