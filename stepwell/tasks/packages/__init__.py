"""Tasks forged from the source of real packages with their own tests."""

from stepwell.tasks.packages.forge import ForgedPackage, PackageYield, Progress, Share, forge_package
from stepwell.tasks.packages.licences import is_permissive
from stepwell.tasks.packages.package_set import ForgedSet, NotEnoughTasks, SetPlan, forge_set, forge_trees
from stepwell.tasks.packages.sources import PACKAGES, PackageTree, PackageUnavailable, archive_tree, source_tree

__all__ = [
    "PACKAGES",
    "ForgedPackage",
    "ForgedSet",
    "NotEnoughTasks",
    "PackageTree",
    "PackageUnavailable",
    "PackageYield",
    "Progress",
    "SetPlan",
    "Share",
    "archive_tree",
    "forge_package",
    "forge_set",
    "forge_trees",
    "is_permissive",
    "source_tree",
]
