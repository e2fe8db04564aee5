"""A rank of a Megatron trainer: a process that the trainer starts, tells what to do through a pipe, and ends.

python -m stepwell.policy.trainers.megatron.rank_process DESCRIPTOR PARENT
"""

import os
import sys
import warnings

from stepwell.policy.trainers.megatron.spec import MegatronSpec
from stepwell.policy.trainers.rank_main import RankChannel, run_rank
from stepwell.policy.trainers.rank_messages import RankSpec


def _serve(channel: RankChannel, spec: RankSpec) -> None:
    assert isinstance(spec, MegatronSpec)
    # What Megatron and cuBLAS read when they start: one queue of kernels, and work space that is always the same.
    os.environ |= {"CUDA_DEVICE_MAX_CONNECTIONS": "1", "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    # Megatron names what it finds not installed, and torch the calls of its own that Megatron should not make any more:
    # dozens of lines a rank, of which none says anything about this run.
    warnings.simplefilter("ignore")
    from stepwell.policy.trainers.megatron.rank import MegatronRank

    MegatronRank(channel, spec).serve()


if __name__ == "__main__":
    sys.exit(run_rank(_serve, int(sys.argv[1]), int(sys.argv[2])))
