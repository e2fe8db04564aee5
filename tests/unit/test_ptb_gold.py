"""Gold answers to every benchmark score 100 %; empty and constant ones its floor. Programs: test_ptb_programs."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from stepwell.ptb.benchmarks import BENCHMARKS, BrokenRows, benchmark
from stepwell.ptb.chat import render, template_of
from stepwell.ptb.evaluate import evaluate
from stepwell.ptb.item import CallGold, ChoiceGold, Item, NumberGold, PairGold, RubricGold
from stepwell.ptb.judging import Question
from stepwell.ptb.scorers import Means, collect, score_answers
from stepwell.ptb.seeds import sample_seed
from tests.ptb_rows import aime_rows, gsm8k_rows, healthbench_row, real, write_gpqa, write_lines

GOLD_REPLY = "the gold reply"


class KnowingJudge:
    """Finds that the gold reply does all that is good and nothing that is bad, and no other anything; a `Judge`."""

    version = "knows gold"

    def __init__(self, items: Sequence[Item]) -> None:
        golds = [item.gold for item in items if isinstance(item.gold, RubricGold)]
        self._good = {one.text for gold in golds for one in gold.criteria if one.points > 0}

    async def ask(self, question: Question) -> str:
        """Its verdict."""
        text = question.messages[-1].content
        if "<criterion>" in text:
            criterion = text.split("<criterion>\n")[1].split("\n</criterion>")[0]
            return json.dumps({"criteria_met": f"<reply>\n{GOLD_REPLY}\n" in text and criterion in self._good})
        if f"<answer_A>\n{GOLD_REPLY}\n" in text:
            return "[[A>>B]]"
        return "[[B>>A]]" if f"<answer_B>\n{GOLD_REPLY}\n" in text else "[[A=B]]"


def gold_answer(item: Item) -> str:
    """A right answer."""
    match item.gold:
        case NumberGold(value=value):
            return f"So it is.\nANSWER: {value}"
        case ChoiceGold(letter=letter):
            return f"So it is.\nANSWER: {letter}"
        case CallGold(function=function, arguments=arguments):
            call = {"name": function, "arguments": dict(arguments)}
            return f"<tool_call>\n{json.dumps(call)}\n</tool_call>"
        case RubricGold() | PairGold():
            return GOLD_REPLY
        case other:
            raise TypeError(f"no gold answer for {other}")


def files_of(name: str, folder: Path) -> Mapping[str, Path]:
    """The benchmark's files: real rows where there are some, else rows of its publisher's format."""
    match name:
        case "aime2025":
            return {"test": write_lines(folder / "aime.jsonl", aime_rows())}
        case "gpqamain":
            return {"test": write_gpqa(folder / "gpqa.csv", 448)}
        case "gsm8k":
            return {"test": real("gsm8k_test.jsonl"), "train": real("gsm8k_train.jsonl")}
        case "bfcl":
            return {"test": real("bfcl_exec_simple.jsonl")}
        case "healthbench":
            return {"test": real("healthbench_easy245.jsonl")}
        case _:
            stem = "arenahard_writing250"
            return {"test": real(f"{stem}_question.jsonl"), "baseline": real(f"{stem}_baseline_qwen3-1.7b.jsonl")}


TEXT_BENCHMARKS = tuple(name for name in BENCHMARKS if name != "humaneval")
CONSTANTS = {
    "aime2025": "ANSWER: 71000",
    "arenahardwriting": "A constant.",
    "bfcl": '<tool_call>{"name": "math_gcd", "arguments": {}}</tool_call>',
    "gpqamain": "ANSWER: A",
    "gsm8k": "ANSWER: -71",
    "healthbench": "A constant.",
}
FLOORS = {"arenahardwriting": 0.5}
"""What a constant scores at most; of a pair that the judge finds equal, one half."""


@pytest.mark.parametrize("name", TEXT_BENCHMARKS)
async def test_gold_answers_score_all_and_empty_and_constant_ones_the_floor(name: str, tmp_path: Path) -> None:
    declared = benchmark(name)
    items = declared.load(files_of(name, tmp_path), seed=72332)
    means = Means(judge=KnowingJudge(items))

    async def score(answers: Sequence[str]) -> float | None:
        return collect(await score_answers(items, answers, means, seed=72332)).value

    assert await score([gold_answer(item) for item in items]) == 1.0
    assert await score([""] * len(items)) == 0.0
    constant = await score([CONSTANTS[name]] * len(items))
    assert constant == pytest.approx(FLOORS.get(name, declared.chance), abs=0.06 if declared.chance else 0)


@pytest.mark.parametrize("name", TEXT_BENCHMARKS)
@pytest.mark.parametrize("model", ["Qwen/Qwen3-4B-Base", "google/gemma-3-4b-pt"])
def test_every_item_becomes_a_prompt(name: str, model: str, tmp_path: Path) -> None:
    for item in benchmark(name).load(files_of(name, tmp_path), seed=1):
        assert item.messages[-1].content in render(template_of(model), item.messages, item.tools)


def test_the_canary_reaches_no_prompt(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "hb.jsonl", [healthbench_row([5, -3])])
    (item,) = benchmark("healthbench").load({"test": path}, 1, whole=False)
    assert "made-by-hand" not in render(template_of("Qwen/Qwen3-4B-Base"), item.messages)


def test_choices_are_ordered_by_seed_and_record_only(tmp_path: Path) -> None:
    def letters(seed: int, count: int) -> list[str]:
        items = benchmark("gpqamain").load({"test": write_gpqa(tmp_path / "g.csv", count)}, seed, whole=False)
        return [item.gold.letter for item in items if isinstance(item.gold, ChoiceGold)]

    assert letters(1, 40)[:20] == letters(1, 20)
    assert letters(1, 40) != letters(2, 40)
    assert set(letters(1, 40)) == set("ABCD")


def test_worked_examples_come_from_the_training_rows_and_are_the_same_for_each_item(tmp_path: Path) -> None:
    train = write_lines(tmp_path / "train.jsonl", gsm8k_rows([str(n) for n in range(50)]))
    test = write_lines(tmp_path / "test.jsonl", gsm8k_rows(["1,234", "-5"]))
    items = benchmark("gsm8k").load({"test": test, "train": train}, 1, whole=False)
    assert [item.gold for item in items] == [NumberGold(1234), NumberGold(-5)]
    assert items[0].messages[0] == items[1].messages[0]
    assert items[0].messages[0].content.count("ANSWER: ") == 10


def test_another_number_of_rows_is_not_the_benchmark(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "aime.jsonl", aime_rows(29))
    with pytest.raises(BrokenRows, match=r"aime2025 has 30 items, and .* 29"):
        benchmark("aime2025").load({"test": path}, 1)
    assert len(benchmark("aime2025").load({"test": path}, 1, whole=False)) == 29


@pytest.mark.parametrize(
    ("name", "row", "said"),
    [
        ("aime2025", {"id": "1", "problem": "Why?", "answer": "x"}, "is no number"),
        ("aime2025", {"id": "1", "answer": "5"}, "no field 'problem'"),
        ("healthbench", healthbench_row([-3]), "no criterion has positive points"),
        ("healthbench", healthbench_row([]), "no criterion has positive points"),
    ],
)
def test_a_row_that_lacks_something_is_named(tmp_path: Path, name: str, row: dict[str, object], said: str) -> None:
    path = write_lines(tmp_path / "rows.jsonl", [row])
    with pytest.raises(BrokenRows, match=said) as caught:
        benchmark(name).load({"test": path}, 1, whole=False)
    assert "line 1" in str(caught.value)


def test_a_file_that_is_not_named_or_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(BrokenRows, match=r"gsm8k needs the file\(s\) train: take them from openai/grade-school-math"):
        benchmark("gsm8k").load({"test": tmp_path / "none"}, 1)
    with pytest.raises(BrokenRows, match="cannot be read"):
        benchmark("aime2025").load({"test": tmp_path / "none"}, 1)
    with pytest.raises(ValueError, match="did you mean 'gsm8k'"):
        benchmark("gsm8")


async def test_a_pass_asks_each_item_under_its_own_seed(tmp_path: Path) -> None:
    items = benchmark("aime2025").load({"test": write_lines(tmp_path / "aime.jsonl", aime_rows())}, 7)
    seeds: list[int] = []

    class Sevens:
        """Answers each third right; a `Generator`."""

        async def generate(self, prompt: str, *, seed: int, max_tokens: int) -> str:
            """The answer, read off the prompt."""
            seeds.append(seed)
            number = int(prompt.split("What is ")[1].split()[0])
            return f"ANSWER: {7 * number if number % 3 == 0 else -1}"

    template = template_of("Qwen/Qwen3-4B-Base")
    done = await evaluate(items, Sevens(), template, Means(), seed=7, max_tokens=100)
    assert done.score.value == pytest.approx(1 / 3)
    assert seeds == [sample_seed(7, item.id) for item in items]
    assert len(set(seeds)) == 30
