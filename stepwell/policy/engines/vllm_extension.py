"""What runs inside vLLM's workers: weights from a folder, checked before a live tensor is touched.

vLLM imports this module because the server is started with `--worker-extension-cls` naming the class below. The import
ties the worker's life to the process that started it, and registers the weight-transfer backend `stepwell_folder`. Its
cycle: `start_weight_update` forgets what was read before, `update_weights {"path": …}` reads and checks a folder,
`finish_weight_update` puts it into the model.

On a CPU vLLM packs the weights of matrix products when it loads them. A reload packs them again, but for a head that
is tied to the embeddings: that one keeps the old weights unless it is packed here.
"""

import ctypes
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from vllm.distributed.weight_transfer.base import (
    WeightTransferEngine,
    WeightTransferInitInfo,
    WeightTransferUpdateInfo,
)
from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory
from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload
from vllm.platforms import current_platform

from stepwell.policy.engines.model_folder import check_same_tensors, read_shapes, read_weights

BACKEND = "stepwell_folder"
_PR_SET_PDEATHSIG = 1


class FolderExtension:
    """Adds nothing to the worker: naming it makes vLLM import this module."""


@dataclass
class FolderInit(WeightTransferInitInfo):
    """There is nothing to set up."""


@dataclass
class FolderUpdate(WeightTransferUpdateInfo):
    """Where the next version lies."""

    path: str


class FolderWeights(WeightTransferEngine[FolderInit, FolderUpdate]):
    """See the module."""

    init_info_cls = FolderInit
    update_info_cls = FolderUpdate

    _read: dict[str, torch.Tensor] | None = None

    def init_transfer_engine(self, init_info: FolderInit) -> None:
        """Nothing to do."""

    def start_weight_update(self) -> None:
        """Forgets what an update that failed may have read."""
        self._read = None

    def receive_weights(self, update_info: FolderUpdate) -> None:
        """Reads and checks the folder; the model is untouched.

        Raises:
            EngineError: the folder does not fit the model that the server was started with.
        """
        weights = read_weights(Path(update_info.path))
        wanted = read_shapes(Path(self.model_config.model))
        check_same_tensors({name: tuple(tensor.shape) for name, tensor in weights.items()}, wanted)
        self._read = weights

    def finish_weight_update(self) -> None:
        """Puts what was read into the model.

        Raises:
            RuntimeError: nothing was read.
        """
        if self._read is None:
            raise RuntimeError("finish_weight_update without update_weights: there is nothing to put into the model")
        model = cast(Any, self.model)  # a vLLM model: torch knows no `load_weights`
        initialize_layerwise_reload(model)
        model.load_weights(iter(self._read.items()))
        finalize_layerwise_reload(model, self.model_config)
        self._read = None
        if current_platform.is_cpu():
            for module in self.model.modules():
                if isinstance(module, ParallelLMHead):
                    module.quant_method.process_weights_after_loading(module)

    def shutdown(self) -> None:
        """Frees what was read."""
        self._read = None


def _die_with_parent() -> None:
    """Asks the kernel to end this process when the one that started it ends, however that ends. The guard takes down
    the whole family when its own parent dies; this is for a server or a guard that is killed by itself."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")


_die_with_parent()
WeightTransferEngineFactory.register_engine(BACKEND, FolderWeights)
