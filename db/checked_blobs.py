"""What came of hashing blobs."""

from typing import NamedTuple

from db.errors import BlobCorrupt, BlobMissing


class Checked(NamedTuple):
    """What was wrong with which blobs, and the bytes of those that are wanted."""

    faults: dict[str, str]
    """What is wrong, by digest: missing, corrupt, or no digest at all."""
    missing: set[str]
    """Of those, the ones that are not stored."""
    kept: dict[str, bytes]
    """Bytes of those that are good and were asked to be kept."""

    def note(self, digest: str, error: BlobMissing | BlobCorrupt) -> None:
        """Something is wrong with a blob."""
        self.faults[digest] = str(error)
        if isinstance(error, BlobMissing):
            self.missing.add(digest)
