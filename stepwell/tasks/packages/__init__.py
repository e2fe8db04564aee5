"""Tasks forged from the source of real packages with their own tests."""

from stepwell.tasks.packages.forge import NotEnoughTasks, forge_package
from stepwell.tasks.packages.sources import PACKAGES, PackageUnavailable

__all__ = ["PACKAGES", "NotEnoughTasks", "PackageUnavailable", "forge_package"]
