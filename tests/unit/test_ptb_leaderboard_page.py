"""What the leaderboard's page draws, read back from its plots. How it looks: tests/browser/test_leaderboard_page.py."""

import re
from statistics import fmean

import pytest

from stepwell.ptb.leaderboard import Board, make_boards
from stepwell.ptb.leaderboard.page import render_leaderboard
from stepwell.ptb.leaderboard.page.naming import named, row_names
from stepwell.ptb.leaderboard.page.plots import mixture_plot, penalty_plot, ranking_plot
from stepwell.ptb.leaderboard.records import Results
from tests.ptb_leaderboards import full_boards
from tests.ptb_results import base_cells, basis, configuration, everywhere, run_cells


@pytest.fixture(scope="module")
def board() -> Board:
    """With six ranked rows."""
    return full_boards()[0]


def test_marks_of_runs_have_the_row_s_mean_and_its_interval_is_the_row_s(board: Board) -> None:
    rows = named(board.rows, row_names(board.rows))
    for (_, row), drawn in zip(rows, ranking_plot(board, rows, "r", "Ranking").rows, strict=True):
        runs = [mark.x for mark in drawn.marks if "run" in mark.kind]
        (mean,) = (mark.x for mark in drawn.marks if "run" not in mark.kind)
        assert len(runs) == row.score.n
        assert fmean(runs) == pytest.approx(mean) == pytest.approx(row.score.mean)
        assert drawn.interval == (None if row.score.low is None else (row.score.low, row.score.high))


def test_bars_of_a_mixture_are_its_cells_end_to_end(board: Board) -> None:
    rows = named(board.rows, row_names(board.rows))
    for (_, row), drawn in zip(rows, mixture_plot(rows, "m").rows, strict=True):
        assert [bar.start for bar in drawn.bars][1:] == [bar.end for bar in drawn.bars][:-1]
        assert (drawn.bars[0].start, drawn.bars[-1].end) == (0, 100)
        shares = {bar.kind: bar.end - bar.start for bar in drawn.bars}
        total = sum(row.places.values())
        assert shares == pytest.approx({kind: 100 * row.places.get(kind, 0) / total for kind in shares})


def test_penalties_are_drawn_where_they_put_the_mean(board: Board) -> None:
    rows = named(board.rows, row_names(board.rows))
    for (_, row), drawn in zip(rows, penalty_plot(rows, "p").rows, strict=True):
        assert sorted(mark.x for mark in drawn.marks) == sorted(
            value for value in row.under.values() if value is not None
        )


def test_an_interval_that_goes_on_beyond_the_axis_ends_in_an_arrow() -> None:
    on = basis()
    wide = [
        *run_cells(on, configuration(), "r0", everywhere(10.0)),
        *run_cells(on, configuration(), "r1", everywhere(40.0)),
    ]
    (found,) = make_boards(Results({on.key: on}, (*base_cells(on), *wide)))
    rows = named(found.rows, row_names(found.rows))
    assert found.rows[0].score.low is not None
    assert found.rows[0].score.low < 0
    drawn = ranking_plot(found, rows, "r", "Ranking").figure()
    (path,) = re.findall(r'<path class="interval first" d="([^"]+)"', drawn)
    assert path.count("L") == 4, "an arrow at each end"


def test_names_tell_rows_apart_as_shortly_as_they_can() -> None:
    on = basis()
    of = (configuration(), configuration(effort="high"), configuration(effort="high", hours=1.0), configuration("beta"))
    cells = [cell for number, one in enumerate(of) for cell in run_cells(on, one, f"r{number}", everywhere(20.0))]
    (found,) = make_boards(Results({on.key: on}, (*base_cells(on), *cells)))
    names = row_names([*found.rows, *found.ablations])
    assert [names[one.digest] for one in of] == ["alpha 10 h", "alpha high 10 h", "alpha high 1 h", "beta"]


def test_a_page_of_ablations_alone_ranks_nobody() -> None:
    on = basis()
    cells = run_cells(on, configuration(hours=1.0), "r0", everywhere(20.0))
    page = render_leaderboard(make_boards(Results({on.key: on}, (*base_cells(on), *cells))))
    assert "no row is ranked" in page
    assert "Ablations, not ranked" in page
