"""The live view of a run in a terminal, and the summary at its end."""

from rich.console import Console

from cli.live.plain import PlainView
from cli.live.screen import ScreenView
from cli.live.summary import summary
from cli.live.view import LiveView

__all__ = ["LiveView", "make_view", "summary"]


def make_view(console: Console, *, ui_url: str = "") -> LiveView:
    """The view that fits where its output goes.

    Args:
        console: Where it is shown; one that is no terminal gets plain lines.
        ui_url: Address of the Temporal UI, shown with the run if it is given.
    """
    return ScreenView(console, ui_url=ui_url) if console.is_terminal else PlainView(console, ui_url=ui_url)
