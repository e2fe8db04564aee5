"""Errors that a user can do something about: their message is all that is shown."""

from activities.stores import NoSuchRun
from activities.trial_streams import NoSuchRunSet
from activities.weights_record import NoVersion
from cli.audit_redact import NotRedacted
from cli.mlperf_files import UnusableFile
from cli.mlperf_study import NotEnded
from cli.step_range import NoSuchStep
from cli.whole_file import CannotWrite
from db.errors import (
    BlobCorrupt,
    BlobMissing,
    BlobStoreUnavailable,
    DatabaseUnavailable,
    DiskFull,
    NewerDatabase,
    OldDatabase,
)
from db.run_export import NotWithheld
from stepwell.audit.bundle import BundleExists
from stepwell.audit.counterfactual import NotComputable
from stepwell.audit.provenance.reference import NoSuchThing
from stepwell.audit.signed import NoAnchor
from stepwell.events import UnknownEvent
from stepwell.mlperf.benchmark_log import NotLoggable
from stepwell.mlperf.official_checks import NoSuchLog
from stepwell.mlperf.official_package import NoMlperfLogging
from stepwell.mlperf.packaging import PackageRefused
from stepwell.mlperf.published_log import NoReferenceLog
from stepwell.mlperf.submission import SubmissionError
from stepwell.policy.weights import DigestMismatch
from stepwell.recipe.loading import RecipeError
from stepwell.sandbox.protocol import SandboxError
from stepwell.signing import UnusableKey
from stepwell.tasks.packages import NotEnoughTasks, PackageUnavailable
from stepwell.tasks.r2e.images import ImagesUnfit
from stepwell.tasks.r2e.task_set import BrokenSet
from stepwell.tasks.set_file import BrokenSetFile
from workers.launch import WorkerFailed
from workers.services.errors import ServiceError

USAGE_ERRORS = (
    BundleExists,
    NoAnchor,
    NoReferenceLog,
    NoSuchLog,
    NoSuchRun,
    NoSuchRunSet,
    NoSuchStep,
    NoSuchThing,
    NotComputable,
    NotLoggable,
    NotRedacted,
    NotWithheld,
    PackageRefused,
    RecipeError,
    SubmissionError,
)
"""What was asked for does not exist or cannot be: exit 2."""

KNOWN_ERRORS = (
    BlobCorrupt,
    BlobMissing,
    BlobStoreUnavailable,
    BrokenSet,
    BrokenSetFile,
    CannotWrite,
    DatabaseUnavailable,
    DigestMismatch,
    DiskFull,
    ImagesUnfit,
    NewerDatabase,
    NoMlperfLogging,
    NoVersion,
    NotEnded,
    NotEnoughTasks,
    OldDatabase,
    PackageUnavailable,
    SandboxError,
    ServiceError,
    UnknownEvent,
    UnusableFile,
    UnusableKey,
    WorkerFailed,
)
"""What failed says why and what to do: exit 1."""
