"""Errors that a user can do something about: their message is all that is shown."""

from activities.stores import NoSuchRun
from db.errors import BlobMissing, BlobStoreUnavailable, DatabaseUnavailable, DiskFull, NewerDatabase, OldDatabase
from stepwell.recipe.loading import RecipeError
from stepwell.sandbox.protocol import SandboxError
from workers.launch import WorkerFailed
from workers.services.errors import ServiceError

USAGE_ERRORS = (RecipeError, NoSuchRun)
"""What was asked for does not exist or cannot be: exit 2."""

KNOWN_ERRORS = (
    BlobMissing,
    BlobStoreUnavailable,
    DatabaseUnavailable,
    DiskFull,
    NewerDatabase,
    OldDatabase,
    SandboxError,
    ServiceError,
    WorkerFailed,
)
"""What failed says why and what to do: exit 1."""
