"""Scaffolds: how agents' programs are started, told to go on, and read. Each is a TOML file here."""

from stepwell.ptb.scaffolds.declared import (
    SCAFFOLDS,
    BrokenScaffold,
    load_scaffold,
    native_scaffolds,
    scaffold,
)
from stepwell.ptb.scaffolds.scaffold import (
    Efforts,
    Exit,
    Provider,
    Scaffold,
    ScaffoldOrder,
    ScaffoldTrace,
    UsagePattern,
    WrongAgent,
)
from stepwell.ptb.scaffolds.stopping import Stop, stop_of

__all__ = [
    "SCAFFOLDS",
    "BrokenScaffold",
    "Efforts",
    "Exit",
    "Provider",
    "Scaffold",
    "ScaffoldOrder",
    "ScaffoldTrace",
    "Stop",
    "UsagePattern",
    "WrongAgent",
    "load_scaffold",
    "native_scaffolds",
    "scaffold",
    "stop_of",
]
