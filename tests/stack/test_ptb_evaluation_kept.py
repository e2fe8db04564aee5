"""Answers that are kept are scored without a model: right ones in full, under the limit that they were given under."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from stepwell.ptb.benchmarks import benchmark
from stepwell.ptb.evaluation import Answer, EvaluationOrder, FailedAttempt
from stepwell.ptb.evaluation.evaluation import evaluate_submission
from stepwell.ptb.evaluation.submission import accept
from stepwell.ptb.evaluation.whole_model import UnusableBase
from stepwell.ptb.evaluation.work_folder import WorkFolder
from stepwell.ptb.item import NumberGold, ProgramGold
from stepwell.ptb.judging import JudgeFailed, Question
from tests.ptb_models import random_tensors, write_adapter, write_model
from tests.ptb_rows import healthbench_row, real, write_lines
from tests.ptb_submissions import gsm8k_files, order_for, submit, write_json


@pytest.fixture
def order(tmp_path: Path) -> EvaluationOrder:
    """Five rows, two passes, in batches of two."""
    return order_for(submit(tmp_path / "model"), gsm8k_files(tmp_path / "rows"), max_tokens=(12, 8))


def keep(work: Path, order: EvaluationOrder, texts: Mapping[int, Sequence[str]], max_tokens: int = 12) -> None:
    """Keeps answers as an evaluation that was killed has left them: by seed, a text to each row."""
    size = order.engine.at_once
    with WorkFolder(work) as folder:
        folder.keep_environment({"by": "hand"})
        for seed, said in texts.items():
            answers = [Answer(text=text, end="stop", prompt_tokens=1, tokens=1) for text in said]
            for number, start in enumerate(range(0, len(answers), size)):
                folder.keep_answers(max_tokens, seed, number, answers[start : start + size])


def gold_of(order: EvaluationOrder) -> list[str]:
    """A right answer to each row."""
    found: list[str] = []
    for item in benchmark(order.benchmark).load(order.files, 0, whole=False)[: order.rows]:
        match item.gold:
            case NumberGold(value=value):
                found.append(f"So it is.\nANSWER: {value}")
            case ProgramGold(prompt=prompt, solution=solution):
                found.append(f"```python\n{prompt}{solution}\n```")
            case other:
                raise TypeError(f"no gold answer for {other}")
    return found


async def test_right_answers_score_in_full_and_each_pass_by_itself(order: EvaluationOrder, tmp_path: Path) -> None:
    gold = gold_of(order)
    keep(tmp_path / "work", order, {11: gold, 12: [*gold[:2], "ANSWER: 71000", "", gold[4]]})
    found = await evaluate_submission(order, tmp_path / "work")
    assert [one.points for one in found.passes] == [100.0, 60.0]
    assert (found.points, found.max_tokens, found.environment) == (80.0, 12, {"by": "hand"})
    assert [one.value for one in found.passes[1].items] == [1.0, 1.0, 0.0, 0.0, 1.0]


async def test_where_a_limit_killed_the_next_one_counts_and_is_told(order: EvaluationOrder, tmp_path: Path) -> None:
    gold, work = gold_of(order), tmp_path / "work"
    keep(work, order, {11: gold}, max_tokens=12)
    keep(work, order, {11: gold, 12: gold}, max_tokens=8)
    died = FailedAttempt(max_tokens=12, why="it ended with status 137")
    with WorkFolder(work) as folder:
        for _ in range(order.limits.tries):
            folder.keep_died(died)
    found = await evaluate_submission(order, work)
    assert (found.points, found.max_tokens, found.died) == (100.0, 8, (died, died))


async def test_programs_are_run_in_sandboxes_of_their_own(order: EvaluationOrder, tmp_path: Path) -> None:
    rows = {"test": real("humaneval.jsonl.gz")}
    programs = order.model_copy(update={"benchmark": "humaneval", "files": rows, "rows": 3, "seeds": (11,)})
    keep(tmp_path / "work", programs, {11: [*gold_of(programs)[:2], "```python\nimport sys; sys.exit(0)\n```"]})
    found = await evaluate_submission(programs, tmp_path / "work")
    assert [one.value for one in found.passes[0].items] == [1.0, 1.0, 0.0]
    assert not list((tmp_path / "work" / "sandboxes").iterdir())


async def test_an_adapter_is_evaluated_as_the_model_that_it_makes_of_the_base(
    order: EvaluationOrder, tmp_path: Path
) -> None:
    base = write_model(tmp_path / "base", random_tensors(1))
    write_json(base / "tokenizer.json", {})
    write_json(base / "generation_config.json", {"temperature": 0.5, "eos_token_id": 7})
    adapter = write_adapter(tmp_path / "adapter", 2, 0.1)
    adapted, gold = order.model_copy(update={"model": adapter}), gold_of(order)
    with pytest.raises(UnusableBase, match="the order names none"):
        await evaluate_submission(adapted, tmp_path / "none")
    keep(tmp_path / "work", order, {11: gold, 12: gold})
    found = await evaluate_submission(adapted.model_copy(update={"base": base}), tmp_path / "work")
    assert found.points == 100.0
    assert found.submission is not None
    assert (found.submission.kind, found.submission.sampling.temperature) == ("adapter", 0.5)
    assert found.submission.stop == ("token 7",)
    assert set(found.submission.files) == {"adapter_config.json", "adapter_model.safetensors"}
    assert accept(tmp_path / "work" / "merged").facts.kind == "model"
    foreign = adapted.model_copy(update={"base": order.model})
    failed = await evaluate_submission(foreign, tmp_path / "foreign")
    assert failed.failure is not None
    assert "the adapter cannot be put on the base model" in failed.failure


class StrictJudge:
    """Finds every criterion unmet, or nothing at all; a `Judge`."""

    version = "strict"

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.asked = 0

    async def ask(self, question: Question) -> str:
        """Its verdict."""
        self.asked += 1
        if self.fails:
            raise JudgeFailed("out of credit")
        return '{"explanation": "No.", "criteria_met": false}'


async def test_judgements_are_kept_and_one_that_fails_leaves_no_score(order: EvaluationOrder, tmp_path: Path) -> None:
    rows = write_lines(tmp_path / "rows.jsonl", [healthbench_row([5, -2])])
    fields = {"benchmark": "healthbench", "files": {"test": rows}, "rows": 1, "seeds": (11,)}
    judged, work = order.model_copy(update=fields), tmp_path / "work"
    keep(work, judged, {11: ["Rest."]})
    without = await evaluate_submission(judged, work, StrictJudge(fails=True))
    assert (without.points, without.unscored, without.failure) == (None, 1, None)
    assert (without.passes[0].low, without.passes[0].high) == (0.0, 100.0)
    (work / "result.json").unlink()  # As after a kill while the judge was asked.
    judge = StrictJudge()
    scored = await evaluate_submission(judged, work, judge)
    assert (scored.points, judge.asked) == (0.0, 2)
    assert scored.passes[0].items[0].answer == without.passes[0].items[0].answer
    (work / "result.json").unlink()
    assert await evaluate_submission(judged, work) == scored, "what was said once is not asked again"
