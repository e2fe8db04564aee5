"""Which blobs a run's events name, from its rows alone."""

from db.database import Database, clear_errors
from db.run_rows import named_rows, run_rows
from stepwell.audit.blob_names import blobs_of, documents_of, folders_of
from stepwell.events import RolloutGraded, RunFinished, UnknownEvent, parse
from stepwell.events.envelope import BrokenLink, open_envelope
from stepwell.events.streams import verdict_stream


class NamedBlobs:
    """Blobs, gathered while events go by."""

    def __init__(self) -> None:
        self.blobs: dict[str, None] = {}
        """All of them, in the order in which they are named."""
        self.documents: set[str] = set()
        """Of those, the ones whose contents the rules of an audit read."""
        self.folders: set[str] = set()
        """Of those, the ones that list the files of a folder."""
        self.verdicts: set[str] = set()
        """Keys of the verdicts that are named."""
        self.is_finished = False
        """Whether the run has ended."""

    def see(self, exact: bytes) -> None:
        """Takes in an event; bytes that are none name nothing, and whoever checks the run finds them.

        Raises:
            UnknownEvent: an event of a newer Stepwell.
        """
        try:
            envelope = open_envelope(exact)
            event = parse(envelope.type, envelope.schema, dict(envelope.body))
        except UnknownEvent:
            raise
        except (BrokenLink, ValueError):
            return
        self.blobs.update(dict.fromkeys(blobs_of(event)))
        self.documents.update(documents_of(event))
        self.folders.update(folders_of(event))
        self.is_finished |= isinstance(event, RunFinished)
        if isinstance(event, RolloutGraded):
            self.verdicts.add(event.verdict_key)


async def blobs_named_by(database: Database, run: str) -> NamedBlobs:
    """What the events of a run, and of the verdicts that it names, name.

    Raises:
        UnknownEvent: an event of a newer Stepwell.
        DatabaseUnavailable: no answer.
    """
    names = NamedBlobs()
    with clear_errors(database.url):
        snapshot = database.engine.execution_options(isolation_level="REPEATABLE READ")
        async with snapshot.begin() as connection:
            async for stream in run_rows(connection, run):
                for row in stream.rows:
                    names.see(row.exact)
            async for stream in named_rows(connection, map(verdict_stream, sorted(names.verdicts))):
                for row in stream.rows:
                    names.see(row.exact)
    return names
