"""What an agent runs to score its own models: inside its sandbox, on the benchmark's own items, as the final evaluation
does, but for what needs a judge or sandboxes, which it can only answer.

What it prints decides nothing.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from stepwell.ptb.evaluation.order import EngineSettings

EXIT_UNUSABLE = 1


class SelfEvaluation(BaseModel):
    """`evaluation.json` of the benchmark's folder."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    benchmark: str
    base_model: str
    files: dict[str, str]
    """Name in the same folder, by what it is."""
    rows: int | None
    """Only the first rows, as the final evaluation."""
    seed: int
    """Of the pass: none of the final evaluation's."""
    max_tokens: int
    """Of one answer."""
    engine: EngineSettings


def main(folder: str) -> int:
    """Scores; 1 if the model cannot be scored.

    Args:
        folder: Of the benchmark.
    """
    settings = SelfEvaluation.model_validate_json((Path(folder) / "evaluation.json").read_text(encoding="utf-8"))
    parser = argparse.ArgumentParser(description=f"Scores a model on {settings.benchmark}.")
    parser.add_argument("--model", type=Path, default=Path("final_model"), help="its folder")
    parser.add_argument("--limit", type=int, help="only the first items")
    parser.add_argument("--max-tokens", type=int, default=settings.max_tokens, help="of one answer")
    parser.add_argument("--base", type=Path, default=Path("/models/base"), help="base model, for adapters")
    parser.add_argument("--answers", type=Path, help="writes each answer to this file, a JSON object a line")
    args = parser.parse_args()
    from stepwell.ptb.evaluation.small_files import Refused

    try:
        sys.stdout.write(json.dumps(_evaluated(settings, Path(folder), args)) + "\n")
    except Refused as error:
        sys.stderr.write(f"evaluate.py: {args.model}: {error}\n")
        return EXIT_UNUSABLE
    return 0


def _evaluated(settings: SelfEvaluation, folder: Path, args: argparse.Namespace) -> dict[str, object]:
    """Imports what the library needs of torch only here."""
    from stepwell.ptb.benchmarks import benchmark
    from stepwell.ptb.chat import template_of
    from stepwell.ptb.evaluate import prompts_of
    from stepwell.ptb.evaluation.inside.batch_answerer import BatchAnswerer
    from stepwell.ptb.evaluation.passes import end_of_turn
    from stepwell.ptb.evaluation.submission import accept
    from stepwell.ptb.evaluation.whole_model import merge_adapter
    from stepwell.ptb.evaluation.wire import Question, Setup
    from stepwell.ptb.scorers import Means, collect, score_answers
    from stepwell.ptb.seeds import sample_seed

    declared, template = benchmark(settings.benchmark), template_of(settings.base_model)
    files = {role: folder / name for role, name in settings.files.items()}
    items = declared.load(files, settings.seed, whole=settings.rows is None)[: settings.rows][: args.limit]
    with tempfile.TemporaryDirectory() as temporary:
        submission, model = accept(args.model), args.model
        if submission.facts.kind == "adapter":
            model = Path(temporary) / "merged"
            merge_adapter(submission, args.base, model)
            submission = accept(model)
        setup = Setup(
            engine=settings.engine,
            temperature=submission.facts.sampling.temperature,
            top_p=submission.facts.sampling.top_p,
            stop_ids=submission.stops.ids,
            stop_texts=submission.stops.texts,
            end_of_turn=end_of_turn(template),
        )
        answerer = BatchAnswerer(model, setup, lambda _: None)
        questions = [
            Question(prompt=prompt, seed=sample_seed(settings.seed, item.id), max_tokens=args.max_tokens)
            for item, prompt in zip(items, prompts_of(items, template), strict=True)
        ]
        size = settings.engine.at_once
        batches = [questions[start : start + size] for start in range(0, len(questions), size)]
        answers = [answer.text for batch in batches for answer in answerer.answer(batch)]
    if args.answers is not None:
        lines = [{"item": item.id, "answer": answer} for item, answer in zip(items, answers, strict=True)]
        args.answers.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    if declared.needs != "nothing":
        return {"benchmark": declared.name, "items": len(items), "points": None, "why": f"needs a {declared.needs}"}
    scored = collect(asyncio.run(score_answers(items, answers, Means(), seed=settings.seed)))
    points = None if scored.value is None else 100 * scored.value
    return {"benchmark": declared.name, "items": len(items), "points": points}
