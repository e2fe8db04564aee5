"""What a live view is."""

from typing import Protocol

from stepwell.contracts.run import Progress
from stepwell.report.picture import RunPicture


class LiveView(Protocol):
    """Shows a run while it goes on. Feed it every half second or so; close it on every path."""

    def update(self, picture: RunPicture, progress: Progress | None, silence: str = "") -> None:
        """Shows the newest picture, and what the run's workflow says that it waits for, or why it does not answer."""
        ...

    def message(self, text: str) -> None:
        """Prints a line that stays."""
        ...

    def close(self) -> None:
        """Leaves the terminal as it was; the lines that were printed stay. Closing twice is closing once."""
        ...
