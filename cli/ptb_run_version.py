"""A weight version of a run as a model folder, out of the ledger and its blobs."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cli.audit_stores import AuditStores

_RUN_VERSION = re.compile(r"(?P<run>[^/@]+)@(?P<version>\d+)")


def model_folder(named: str, cache: Path) -> Path:
    """The folder that is named: a path, or a run and a version of its weights as `micro-1@12`, which is fetched.

    Args:
        named: What the command was given; a folder that exists is itself.
        cache: Where a version is fetched to.

    Raises:
        NoSuchRun, NoVersion: there is none.
        DigestMismatch: what is stored is not what the ledger says.
        ServiceError, DatabaseUnavailable, BlobStoreUnavailable, BlobMissing: the stores cannot be read.
    """
    match = _RUN_VERSION.fullmatch(named)
    if match is None or Path(named).exists():
        return Path(named)
    from cli.audit_stores import on_run  # imported here: it takes a second

    return on_run(match["run"], lambda stores: fetch_version(stores, match["run"], int(match["version"]), cache))


async def fetch_version(stores: "AuditStores", run: str, version: int, cache: Path) -> Path:
    """The folder of a version, under `cache`. Raises as `model_folder`."""
    from activities.folders import get_folder
    from activities.stores import Stores
    from activities.weights_record import WeightsRecord
    from db.ledger import Ledger
    from stepwell.policy.weights import DigestMismatch, load_folder, weights_digest

    record = await WeightsRecord.read(Stores(Ledger(stores.database), stores.blobs, actor="auditor:score"), run)
    made = record.made(version)
    folder = await get_folder(stores.blobs, made.export, cache)
    found = weights_digest(load_folder(folder))
    if found != made.digests.exported:
        raise DigestMismatch(
            f"the stored weights of version {version} of run {run} have the digest {found}, and the ledger says "
            f"{made.digests.exported}: look at the blobs with `stepwell audit verify {run}`"
        )
    return folder
