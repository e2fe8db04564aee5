"""Regimes, their weights, and the published baselines that the weights come from."""

from pathlib import Path

import pytest

from stepwell.ptb import regimes
from stepwell.ptb.basis import basis_of
from stepwell.ptb.benchmarks import BENCHMARKS
from stepwell.ptb.chat import template_of
from stepwell.ptb.regimes import REGIMES, BrokenRegime, load_regime, regime
from stepwell.ptb.weighting import published_baselines, weighted_average, weights_of

ROUNDING = 2e-5
"""Of a weight: the published baselines have two digits."""


@pytest.mark.parametrize("name", REGIMES)
def test_the_weights_follow_from_the_published_baselines(name: str) -> None:
    table, of = published_baselines(), regime(name)
    computed = weights_of(table.base, table.instruct, of.benchmarks)
    assert computed == pytest.approx(of.weights, abs=ROUNDING)


@pytest.mark.parametrize(
    ("name", "base", "instruct"), [("v1.0", 7.53, 51.14), ("v1.1", 7.53, 51.14), ("v1.2", 8.01, 48.41)]
)
def test_the_published_averages_are_reproduced(name: str, base: float, instruct: float) -> None:
    table, of = published_baselines(), regime(name)
    scores = {kind: {m: {b: one[b] for b in of.weights} for m, one in rows.items()} for kind, rows in table}
    assert weighted_average(scores["base"], of.weights) == pytest.approx(base, abs=0.005)
    assert weighted_average(scores["instruct"], of.weights) == pytest.approx(instruct, abs=0.0051)


@pytest.mark.parametrize(
    ("model", "average"),
    [
        ("Qwen/Qwen3-1.7B", 49.41),
        ("Qwen/Qwen3-4B", 63.75),
        ("HuggingFaceTB/SmolLM3-3B", 44.81),
        ("google/gemma-3-4b-it", 46.58),
    ],
)
def test_the_published_average_of_each_instruct_model_is_reproduced(model: str, average: float) -> None:
    one = {model: published_baselines().instruct[model]}
    assert weighted_average(one, regime("v1.0").weights) == pytest.approx(average, abs=0.006)


def test_a_benchmark_on_which_instruct_models_are_no_better_has_no_weight() -> None:
    with pytest.raises(ValueError, match="no weight by this rule"):
        weights_of({"b": {"x": 5.0}}, {"i": {"x": 5.0}}, ("x",))


def test_a_missing_score_is_named() -> None:
    with pytest.raises(ValueError, match="m has no score on y"):
        weighted_average({"m": {"x": 1.0}}, {"x": 0.5, "y": 0.5})


@pytest.mark.parametrize("name", REGIMES)
def test_a_regime_names_what_there_is(name: str) -> None:
    of = regime(name)
    assert set(of.benchmarks) <= BENCHMARKS.keys()
    assert {template_of(model).answer for model in of.base_models}
    assert all(BENCHMARKS[one].max_tokens == of.max_tokens[one][0] for one in of.benchmarks)


def test_regimes_differ_as_they_should() -> None:
    first, second, third = (regime(name) for name in REGIMES)
    assert len(first.benchmarks) == len(second.benchmarks) == 7
    assert set(first.benchmarks) - set(third.benchmarks) == {"bfcl"}
    assert third.seeds == (72332, 87681, 38992, 92201, 13818)
    assert third.seeds_of("gsm8k", 1, judged=False) == third.seeds
    assert third.seeds_of("healthbench", 1, judged=True) == (72332,)
    assert first.seeds_of("gsm8k", 7, judged=False) == (7,)
    with pytest.raises(BrokenRegime, match="no benchmark 'bfcl'"):
        third.seeds_of("bfcl", 1, judged=False)


def test_an_unknown_regime_is_named_with_the_nearest() -> None:
    with pytest.raises(BrokenRegime, match=r"did you mean 'v1\.2'"):
        regime("v12")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "v1.2"', 'name = "v1.2"\nother = 1', "other: Extra inputs"),
        ("humaneval = 0.1147", "humaneval = 0.2147", "sum to 1.1"),
        ("hours = 10.0", "hours = 0", "hours: Input should be greater than 0"),
        ("72332, 87681", "72332, 72332", "stands twice"),
        ("gsm8k = [4000, 3000, 2000]", "", "wanted the same"),
    ],
)
def test_a_file_that_is_no_regime_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert regimes.__file__ is not None
    text = Path(regimes.__file__).with_name("v1.2.toml").read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "mine.toml"
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(BrokenRegime, match=said):
        load_regime(path)


def test_scores_of_two_regimes_or_of_other_data_have_other_keys(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("{}\n", encoding="utf-8")
    files = {name: {"test": path} for name in BENCHMARKS}

    def key(name: str) -> str:
        return basis_of(regime(name), files, gpus=1, environment="image", judge="judge").key

    before = {name: key(name) for name in REGIMES}
    assert len(set(before.values())) == len(REGIMES)
    path.write_text("{ }\n", encoding="utf-8")
    assert not {key(name) for name in REGIMES} & set(before.values())


def test_a_basis_names_the_judge_that_its_benchmarks_need(tmp_path: Path) -> None:
    files = {name: {"test": tmp_path / "none"} for name in BENCHMARKS}
    with pytest.raises(ValueError, match="arenahardwriting, healthbench need a judge"):
        basis_of(regime("v1.2"), files, gpus=1, environment="image")
    with pytest.raises(ValueError, match="no files are named for bfcl"):
        basis_of(regime("v1.1"), {name: files[name] for name in files if name != "bfcl"}, gpus=1, environment="image")
