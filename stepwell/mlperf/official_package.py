"""MLCommons' package `mlperf-logging`, which is an extra of ours: imported where it is needed, by name."""

import importlib
from typing import Any

EXTRA = "stepwell[mlperf]"
"""What installs it."""


class NoMlperfLogging(ImportError):
    """The package is not installed."""


def official(module: str) -> Any:
    """A module of the package, which has no types.

    Raises:
        NoMlperfLogging: it is not installed.
    """
    try:
        return importlib.import_module(f"mlperf_logging.{module}")
    except ModuleNotFoundError as error:
        raise NoMlperfLogging(
            f"no module {error.name!r}: logs are written and checked by MLCommons' own package; pip install '{EXTRA}'"
        ) from None
