"""The scaffolds that travel with this package."""

import tomllib
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from stepwell.nearest_names import did_you_mean
from stepwell.ptb.scaffolds.scaffold import Scaffold
from stepwell.ptb.traces import BrokenRule

SCAFFOLDS = ("claude_code", "codex_cli", "gemini_cli", "opencode", "shell")
"""Names."""


class BrokenScaffold(ValueError):
    """A file declares no scaffold, or there is none of that name."""


@cache
def scaffold(name: str) -> Scaffold:
    """The scaffold of that name.

    Raises:
        BrokenScaffold: there is none.
    """
    if name not in SCAFFOLDS:
        hint = did_you_mean(name, SCAFFOLDS)
        raise BrokenScaffold(f"no scaffold {name!r}; there are {', '.join(SCAFFOLDS)}" + (f"; {hint}" if hint else ""))
    return load_scaffold(Path(__file__).with_name(f"{name}.toml"))


def native_scaffolds() -> dict[str, str]:
    """Vendor, by name of each that is made for one vendor's models."""
    vendors = {name: scaffold(name).native_to for name in SCAFFOLDS}
    return {name: vendor for name, vendor in vendors.items() if vendor is not None}


def load_scaffold(path: Path) -> Scaffold:
    """The scaffold of a file.

    Raises:
        BrokenScaffold: the file cannot be read, or declares none.
    """
    try:
        return Scaffold.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BrokenScaffold(f"{path} cannot be read as TOML: {error}") from error
    except BrokenRule as error:
        raise BrokenScaffold(f"{path} is no scaffold: {error}") from error
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors(include_url=False)]
        raise BrokenScaffold("\n  ".join([f"{path} is no scaffold:", *lines])) from error
