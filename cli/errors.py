"""Errors that a user can do something about: their message is all that is shown."""

from activities.stores import NoSuchRun
from cli.audit_redact import NotRedacted
from cli.live.page_file import CannotWrite
from db.errors import BlobMissing, BlobStoreUnavailable, DatabaseUnavailable, DiskFull, NewerDatabase, OldDatabase
from db.run_export import NotWithheld
from stepwell.audit.bundle import BundleExists
from stepwell.audit.signed import NoAnchor
from stepwell.events import UnknownEvent
from stepwell.recipe.loading import RecipeError
from stepwell.sandbox.protocol import SandboxError
from stepwell.signing import UnusableKey
from stepwell.tasks.packages import NotEnoughTasks, PackageUnavailable
from stepwell.tasks.r2e.images import ImagesUnfit
from stepwell.tasks.r2e.task_set import BrokenSet
from workers.launch import WorkerFailed
from workers.services.errors import ServiceError

USAGE_ERRORS = (RecipeError, NoSuchRun, NoAnchor, NotWithheld, NotRedacted, BundleExists)
"""What was asked for does not exist or cannot be: exit 2."""

KNOWN_ERRORS = (
    BlobMissing,
    BlobStoreUnavailable,
    BrokenSet,
    CannotWrite,
    DatabaseUnavailable,
    DiskFull,
    ImagesUnfit,
    NewerDatabase,
    NotEnoughTasks,
    OldDatabase,
    PackageUnavailable,
    SandboxError,
    ServiceError,
    UnknownEvent,
    UnusableKey,
    WorkerFailed,
)
"""What failed says why and what to do: exit 1."""
