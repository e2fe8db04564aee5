"""Writing a run's page."""

import os
import tempfile
from pathlib import Path

from cli.reading import Reader
from stepwell.audit.provenance.overview import overview
from stepwell.report.page import render_page
from stepwell.report.picture import RunPicture
from stepwell.report.verified import Verified
from workers.services.home import Home


class CannotWrite(OSError):
    """The page cannot be written where it was asked for."""


def default_page(run: str) -> Path:
    """Where a run's page is written unless asked otherwise."""
    return Home.of(None).root / "reports" / f"{run}.html"


async def write_page(reader: Reader, picture: RunPicture, path: Path, verified: Verified | None = None) -> None:
    """Writes a run's page, whole or not at all; one that is there is replaced.

    Args:
        reader: Reads the run.
        picture: Of the run.
        path: Where the page goes.
        verified: What an audit said of the run just now, if there was one.

    Raises:
        CannotWrite: the file system refuses.
        DatabaseUnavailable, BlobStoreUnavailable: no answer.
    """
    provenance = await (await reader.source(picture.run)).answer(overview)
    page = render_page(picture, await reader.transcripts(picture), provenance, verified)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        partial = Path(name)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(page)
            partial.chmod(0o644)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise CannotWrite(f"cannot write {path}: {error.strerror}; choose another place with --output") from error
