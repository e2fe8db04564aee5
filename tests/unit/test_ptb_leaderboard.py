"""Leaderboards: what counts, what is told apart, what is kept apart."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.ptb.leaderboard import Basis, Board, BrokenResults, Cell, NoBaseScore, make_boards, read_results
from stepwell.ptb.leaderboard.records import Results
from tests.ptb_results import (
    BASE_POINTS,
    MODELS,
    base_cells,
    basis,
    configuration,
    everywhere,
    run_cells,
    write_results,
)

ONE, TWO = MODELS
BASE = 15.5


def board_of(on: Basis, cells: list[Cell]) -> Board:
    """The one board of these cells."""
    (board,) = make_boards(Results({on.key: on}, tuple(base_cells(on) + cells)))
    return board


def test_the_mean_is_weighted_by_benchmark_over_base_models() -> None:
    on = basis()
    points = {(ONE, "gsm8k"): 40.0, (TWO, "gsm8k"): 60.0, (ONE, "bfcl"): 80.0, (TWO, "bfcl"): 100.0}
    (row,) = board_of(on, run_cells(on, configuration(), "r1", points)).rows
    assert row.score.mean == pytest.approx(0.75 * 50 + 0.25 * 90)
    assert (row.base, row.gain) == pytest.approx((BASE, 60.0 - BASE))
    assert row.by_benchmark["bfcl"].score.mean == pytest.approx(90)
    assert row.by_benchmark["bfcl"].gain == pytest.approx(88)
    assert row.by_base_model[ONE].score.mean == pytest.approx(0.75 * 40 + 0.25 * 80)
    assert row.by_base_model[ONE].base == pytest.approx(7.5)
    assert (row.score.deviation, row.score.low, row.insufficient) == (None, None, True)


@pytest.mark.parametrize("kind", ["flagged", "failed", "missing"])
def test_a_cell_without_a_clean_score_counts_as_the_base_model_in_a_column_of_its_own(kind: str) -> None:
    on, place = basis(), (TWO, "gsm8k")
    points = everywhere(90.0)
    if kind != "flagged":
        del points[place]
    marked = {kind: [place]} if kind != "missing" else {}
    (row,) = board_of(on, run_cells(on, configuration(), "r1", points, **marked)).rows
    assert row.score.mean == pytest.approx(0.75 * (90 + 30) / 2 + 0.25 * 90)
    (cell,) = (cell for cell in row.cells if (cell.base_model, cell.benchmark) == place)
    assert (cell.status, cell.imputed, cell.counted) == (kind, 30.0, 30.0)
    assert cell.raw == (90.0 if kind == "flagged" else None)
    assert cell.flags == (("contamination",) if kind == "flagged" else ())
    assert row.imputed_share == pytest.approx(0.375)
    assert row.places == {"clean": 3, kind: 1}
    assert row.raw_score == pytest.approx(90.0)


def test_other_penalties_are_told_with_the_ranks_that_they_would_give() -> None:
    on = basis()
    honest = run_cells(on, configuration("honest"), "r1", everywhere(20.0))
    flagged = run_cells(on, configuration("flagged"), "r1", everywhere(25.0), flagged=[(TWO, "gsm8k"), (ONE, "gsm8k")])
    first, second = board_of(on, honest + flagged).rows
    assert (first.configuration.agent, second.configuration.agent) == ("flagged", "honest")
    assert first.under == {
        "base": pytest.approx(0.75 * 20 + 0.25 * 25),
        "zero": pytest.approx(0.25 * 25),
        "drop": pytest.approx(25.0),
    }
    assert first.rank_under == {"base": 1, "zero": 2, "drop": 1}
    assert second.under == dict.fromkeys(("base", "zero", "drop"), pytest.approx(20.0))


def test_a_run_with_unscored_answers_waits_and_is_counted_neither_as_zero_nor_as_base() -> None:
    on, place = basis(), (ONE, "bfcl")
    points = everywhere(50.0)
    del points[place]
    whole = run_cells(on, configuration(), "r1", everywhere(40.0))
    board = board_of(on, whole + run_cells(on, configuration(), "r2", points, unscored=[place]))
    (row,) = board.rows
    assert (row.score.n, row.score.mean) == (1, pytest.approx(40.0))
    (waiting,) = board.waiting
    assert (waiting.run_set, waiting.cells) == ("r2", (f"{ONE} on bfcl",))


def test_results_of_different_keys_are_never_in_one_table() -> None:
    on, other = basis(), basis(judge="another judge")
    cells = [one for each in (on, other) for one in base_cells(each)]
    cells += run_cells(on, configuration("alpha"), "r1", everywhere(40.0))
    cells += run_cells(other, configuration("beta"), "r1", everywhere(60.0))
    boards = make_boards(Results({on.key: on, other.key: other}, tuple(cells)))
    assert {board.key: [row.configuration.agent for row in board.rows] for board in boards} == {
        on.key: ["alpha"],
        other.key: ["beta"],
    }


@pytest.mark.parametrize(
    "changed",
    [
        {"regime": "other"},
        {"rules": "v1.2"},
        {"weights": {"gsm8k": 0.5, "bfcl": 0.5}},
        {"data": {"gsm8k": "d1", "bfcl": "changed"}},
        {"scorers": {"gsm8k": "number-2", "bfcl": "call-1"}},
        {"templates": dict.fromkeys(MODELS, "t2")},
        {"environment": "image-2"},
        {"seeds": (1,)},
        {"judge": "one"},
        {"checks": ("contamination-1",)},
        {"hours": 5.0},
    ],
)
def test_everything_that_a_score_depends_on_is_in_the_key(changed: dict[str, object]) -> None:
    assert basis(**changed).key != basis().key


def test_the_order_of_models_and_tables_is_not_in_the_key() -> None:
    assert basis(base_models=MODELS[::-1], weights={"bfcl": 0.25, "gsm8k": 0.75}).key == basis().key


def test_other_efforts_and_scaffolds_are_rows_of_their_own_and_other_times_are_not_ranked() -> None:
    on = basis()
    cells: list[Cell] = []
    for of in (
        configuration(),
        configuration(effort="high"),
        configuration(scaffold="other"),
        configuration(scaffold_version="2"),
        configuration(reprompt=True),
        configuration(hours=1.0),
        configuration(gpus=2),
    ):
        cells += run_cells(on, of, "r1", everywhere(40.0))
    board = board_of(on, cells)
    assert [row.score.n for row in board.rows] == [1] * 5
    assert sorted(row.differs_from_basis for row in board.ablations) == [("1 hours, not 10",), ("2 GPUs, not 1",)]
    assert all(row.rank is None for row in board.ablations)


def test_rows_are_tied_until_their_runs_tell_them_apart() -> None:
    on = basis()
    cells: list[Cell] = []
    for agent, runs in {
        "a": (50, 51, 52, 53, 54),
        "b": (49, 51, 51, 53, 54),
        "c": (20, 21, 22, 21, 20),
        "d": (60,),
    }.items():
        for number, points in enumerate(runs):
            cells += run_cells(on, configuration(agent), f"r{number}", everywhere(points))
    rows = board_of(on, cells).rows
    assert [row.configuration.agent for row in rows] == ["d", "a", "b", "c"]
    assert [row.rank for row in rows] == [1, 2, 3, 4]
    assert [row.insufficient for row in rows] == [True, False, False, False]
    assert [row.tie_group for row in rows] == [1, 1, 1, 1]  # of the first there is one run: it is apart from nothing
    assert [row.ranks for row in rows] == [(1, 4), (1, 3), (1, 3), (3, 4)]


def test_a_tie_group_begins_where_a_row_is_apart_from_the_first_of_the_one_before() -> None:
    on = basis()
    cells: list[Cell] = []
    for agent, runs in {"a": (50, 51, 52, 53, 54), "b": (49, 51, 51, 53, 54), "c": (20, 21, 22, 21, 20)}.items():
        for number, points in enumerate(runs):
            cells += run_cells(on, configuration(agent), f"r{number}", everywhere(points))
    assert [row.tie_group for row in board_of(on, cells).rows] == [1, 1, 2]


def test_a_limit_of_tokens_that_differs_within_a_column_is_said() -> None:
    on = basis()
    cells = run_cells(on, configuration(), "r1", everywhere(40.0))
    cells = [cell.model_copy(update={"max_tokens": 4000 if cell.base_model == ONE else 3000}) for cell in cells]
    warnings = board_of(on, cells).warnings
    assert warnings == tuple(
        f"answers on {name} were scored under different limits of tokens: [3000, 4000]" for name in ("bfcl", "gsm8k")
    )


def test_without_base_scores_there_is_no_board_and_published_ones_are_taken_only_where_they_fit() -> None:
    on = basis()
    cells = tuple(run_cells(on, configuration(), "r1", everywhere(40.0)))
    for published in (False, True):
        with pytest.raises(NoBaseScore, match="4 base scores are missing"):
            make_boards(Results({on.key: on}, cells), published=published)


def test_published_base_scores_are_said_to_be_published() -> None:
    models = ("Qwen/Qwen3-1.7B-Base", "google/gemma-3-4b-pt")
    on = basis(base_models=models, templates=dict.fromkeys(models, "t"))
    cells = tuple(run_cells(on, configuration(), "r1", {(models[0], "gsm8k"): 40.0}))
    (board,) = make_boards(Results({on.key: on}, cells), published=True)
    assert "4 of them published ones" in board.base_from
    assert board.base == pytest.approx(0.75 * (12.66 + 6.14) / 2 + 0.25 * 3)


@given(st.lists(st.floats(min_value=0, max_value=100), min_size=4, max_size=4))
def test_points_of_all_cells_stay_within_their_range_and_every_penalty_agrees_on_clean_runs(
    points: list[float],
) -> None:
    on = basis()
    (row,) = board_of(on, run_cells(on, configuration(), "r1", dict(zip(BASE_POINTS, points, strict=True)))).rows
    assert min(points) - 1e-9 <= row.score.mean <= max(points) + 1e-9
    for one in (*row.under.values(), row.raw_score):
        assert one is not None
        assert math.isclose(one, row.score.mean, abs_tol=1e-9)
    assert row.imputed_share == 0


def test_results_are_read_as_they_were_written_and_the_same_line_twice_counts_once(tmp_path: Path) -> None:
    on = basis()
    cells = run_cells(on, configuration(), "r1", everywhere(40.0), flagged=[(ONE, "gsm8k")])
    path = write_results(tmp_path / "a.jsonl", on, *base_cells(on), *cells)
    results = read_results([path, path])
    assert results.bases == {on.key: on}
    assert results.cells == tuple(base_cells(on) + cells)


def test_two_different_records_of_one_cell_are_refused(tmp_path: Path) -> None:
    on = basis()
    first = write_results(tmp_path / "a.jsonl", on, *run_cells(on, configuration(), "r1", everywhere(40.0)))
    second = write_results(tmp_path / "b.jsonl", *run_cells(on, configuration(), "r1", everywhere(41.0)))
    with pytest.raises(BrokenResults, match="two records of one cell"):
        read_results([first, second])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nonsense", "neither a basis nor a cell"),
        ('{"kind": "cell"}', "cell.basis: Field required"),
        ('{"kind": "other"}', "does not match any of the expected tags"),
    ],
)
def test_a_line_that_is_no_result_is_named(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(line + "\n", encoding="utf-8")
    with pytest.raises(BrokenResults, match=said) as caught:
        read_results([path])
    assert "line 1" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"basis": "0" * 64}, "is in none of the files"),
        ({"base_model": "lab/three"}, "is no base model of its basis"),
        ({"benchmark": "aime2025"}, "is no benchmark of its basis"),
    ],
)
def test_a_cell_that_does_not_fit_its_basis_is_refused(tmp_path: Path, change: dict[str, object], said: str) -> None:
    on = basis()
    cell = run_cells(on, configuration(), "r1", everywhere(40.0))[0].model_copy(update=change)
    with pytest.raises(BrokenResults, match=said):
        read_results([write_results(tmp_path / "a.jsonl", on, cell)])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"raw": None}, "neither a failure nor unscored"),
        ({"unscored": 1}, "wanted null"),
        ({"failure": "none"}, "wanted null"),
        ({"configuration": None}, "has a configuration"),
        ({"raw": 101.0}, "less than or equal to 100"),
        ({"passes": ({"seed": 1, "points": 10.0},)}, "mean of the passes"),
    ],
)
def test_a_record_that_contradicts_itself_is_refused(change: dict[str, object], said: str) -> None:
    on = basis()
    cell = run_cells(on, configuration(), "r1", everywhere(40.0))[0]
    with pytest.raises(ValueError, match=said):
        Cell.model_validate(cell.model_dump() | change)
