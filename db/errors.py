"""What can go wrong between us and the stores, each with what to do."""


class DatabaseUnavailable(ConnectionError):
    """The database does not answer, or refused us."""


class DatabaseRefused(DatabaseUnavailable):
    """The database answers, and refuses this role: waiting does not help."""


class DiskFull(OSError):
    """A store has no room left: nothing was written."""


class Fenced(RuntimeError):
    """The place in the stream is taken: somebody else writes it now. Stop, and read the stream before going on."""

    def __init__(self, stream: str, *, expected: int, found: int, key: str, why: str) -> None:
        super().__init__(
            f"{stream}: expected to append {key!r} at #{expected}, but {why}; the stream has {found} event(s). "
            "Another writer holds it: stop this attempt."
        )
        self.stream = stream
        self.expected = expected
        """Sequence number that the append named."""
        self.found = found
        """Events that the stream has: the next free sequence number."""
        self.key = key
        """Key of the first event that could not be appended."""


class NotOwner(PermissionError):
    """An actor appended to a kind of stream that another kind of actor owns."""


class BrokenStream(ValueError):
    """A stream does not verify."""

    def __init__(self, stream: str, seq: int, why: str) -> None:
        super().__init__(f"{stream} breaks at #{seq}: {why}")
        self.stream = stream
        self.seq = seq
        """First event that does not hold."""
        self.why = why


class BlobMissing(LookupError):
    """No blob under this digest."""


class BlobCorrupt(ValueError):
    """The bytes under a digest are not the ones it names."""


class BlobStoreUnavailable(ConnectionError):
    """The object store does not answer, or refused us."""


class BucketMissing(BlobStoreUnavailable):
    """The bucket does not exist, or may not be used with these credentials."""


class LeaseLost(RuntimeError):
    """The lease ran out, or another process registered under the same id."""


class OldDatabase(RuntimeError):
    """The database was made by an older Stepwell, or is empty."""


class RestoredDatabase(OldDatabase):
    """The database was moved to another server, whose transactions are numbered lower than its events."""


class NewerDatabase(RuntimeError):
    """The database was made by a newer Stepwell."""
