"""What answers and scores depend on beside the model: what makes two results comparable, and one evaluation itself."""

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from stepwell.ptb.benchmarks import benchmark
from stepwell.ptb.benchmarks.rows import digest_of_files
from stepwell.ptb.chat import template_of
from stepwell.ptb.evaluation.order import EngineSettings, EvaluationOrder

ANSWERING = "answers-1"
"""How questions are put and answers cut: another version's scores are not comparable."""
_LIBRARIES = {"transformers": ("torch", "transformers", "tokenizers"), "vllm": ("vllm", "tokenizers")}


def evaluation_environment(engine: EngineSettings) -> str:
    """Name of the environment that a model answers in, for the comparability key: libraries and arithmetic. Neither
    the machine nor threads nor batches are in it: they move last bits, which is what passes under several seeds are
    for."""
    libraries = [f"{name} {_version(name)}" for name in _LIBRARIES[engine.kind]]
    arithmetic = f"{engine.dtype} on {engine.device}, up to {engine.max_context} tokens"
    return "; ".join([ANSWERING, f"engine {engine.kind}", *libraries, arithmetic])


def data_of(files: Mapping[str, Path], rows: int | None) -> str:
    """What a benchmark's data are, for the comparability key: some of its rows are other data than all."""
    digest = digest_of_files(files)
    return digest if rows is None else f"{digest}, first {rows} rows"


def identity_of(order: EvaluationOrder, submitted: Mapping[str, str], judge: str | None) -> dict[str, object]:
    """All that the result of an order depends on: contents, not places.

    Args:
        order: The order.
        submitted: Digests of what is evaluated, by name.
        judge: Version of the judge, if one scores.
    """
    return {
        "submitted": dict(submitted),
        "base_model": order.base_model,
        "benchmark": order.benchmark,
        "data": data_of(order.files, order.rows),
        "scorer": benchmark(order.benchmark).scorer,
        "template": template_of(order.base_model).digest,
        "judge": judge,
        "seeds": list(order.seeds),
        "max_tokens": list(order.max_tokens),
        "engine": order.engine.model_dump(mode="json"),
        "environment": evaluation_environment(order.engine),
    }


def _version(library: str) -> str:
    """Of the CPU's wheel of vLLM, which has another name, too."""
    for name in (library, f"{library}-cpu"):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return "not installed"
