"""Results of trials, ranked: read, filled, averaged, compared. Pure but for the reading of files."""

from stepwell.ptb.leaderboard.board import Board, Row
from stepwell.ptb.leaderboard.make import NoBaseScore, make_boards
from stepwell.ptb.leaderboard.reading import read_results
from stepwell.ptb.leaderboard.records import Basis, BrokenResults, Cell, Configuration, Flag, Pass, Results

__all__ = [
    "Basis",
    "Board",
    "BrokenResults",
    "Cell",
    "Configuration",
    "Flag",
    "NoBaseScore",
    "Pass",
    "Results",
    "Row",
    "make_boards",
    "read_results",
]
