"""Writing a run's page."""

from pathlib import Path

from cli.reading import Reader
from cli.whole_file import write_whole
from stepwell.audit.provenance.overview import overview
from stepwell.report.page import render_page
from stepwell.report.picture import RunPicture
from stepwell.report.verified import Verified
from workers.services.home import Home


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
    write_whole(path, render_page(picture, await reader.transcripts(picture), provenance, verified), "--output")
