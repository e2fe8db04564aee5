"""`stepwell ptb score`: evaluates a model, and writes what a leaderboard reads."""

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cli.arguments import Subparsers, positive

if TYPE_CHECKING:
    from stepwell.ptb.evaluation import EvaluationResult


def add_parser(actions: Subparsers) -> None:
    """Adds the action."""
    parser = actions.add_parser(
        "score",
        help="evaluate a model on benchmarks, and write a file of results",
        description="Answers come from a sandbox without a network that knows the questions only; scores are made "
        "outside. Broken off, the same command goes on; done, another --out and --work give the same bits. Exit status "
        "0 also for a submission that cannot be evaluated, which is a result; 1 if there is none; 2 if the request is "
        "wrong. docs/evaluation.md says what of a submission is read.",
    )
    parser.add_argument("model", metavar="MODEL", help="a model's folder, or RUN@VERSION; an adapter is a model too")
    parser.add_argument("--base-model", required=True, metavar="NAME", help="name of the base model that it stands for")
    parser.add_argument("--base", type=Path, metavar="FOLDER", help="the base model: for adapters, and to tell faults")
    parser.add_argument("--benchmark", nargs="+", required=True, metavar="NAME", help="of the regime's")
    parser.add_argument("--files", type=Path, required=True, metavar="FILE.toml", help="see `stepwell ptb files`")
    parser.add_argument("--regime", required=True, metavar="NAME", help="v1.0, v1.1, v1.2, or a file of your own")
    parser.add_argument("--out", type=Path, required=True, metavar="RESULTS", help="file of results")
    parser.add_argument("--work", type=Path, metavar="FOLDER", help="answers, judgements and scores (RESULTS.work)")
    parser.add_argument("--role", choices=("base", "instruct", "few_shot", "agent"), required=True, help="what it is")
    parser.add_argument(
        "--configuration", type=Path, metavar="FILE.toml", help="of an agent: agent, model, scaffold, hours, gpus, …"
    )
    parser.add_argument("--run-set", default="reference", metavar="NAME", help="which run over all cells (reference)")
    parser.add_argument("--trial", metavar="NAME", help="of the trial (the role and the base model's name)")
    parser.add_argument("--seed", type=int, default=0, help="of the pass, where the regime fixes none (0)")
    parser.add_argument("--gpus", type=int, default=1, help="of one agent, in the comparability key (1)")
    parser.add_argument("--checks", nargs="*", default=[], metavar="VERSION", help="likewise: checks of every cell")
    _add_engine(parser)
    _add_judge(parser)
    parser.add_argument("--json", action="store_true", help="print the cells as a JSON list")
    parser.set_defaults(run=run)


def _add_engine(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("engine")
    group.add_argument("--engine", choices=("transformers", "vllm"), default="transformers")
    group.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    group.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    group.add_argument("--threads", type=positive, default=1, metavar="N", help="of one operation (1)")
    group.add_argument("--at-once", type=positive, default=16, metavar="N", help="answers of a batch (16)")


def _add_judge(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("judge")
    group.add_argument("--judge", metavar="URL", help="chat completions in OpenAI's form, up to /v1")
    group.add_argument("--judge-model", metavar="NAME", help="(the regime's)")
    group.add_argument("--judge-effort", metavar="EFFORT", help="(the regime's)")
    group.add_argument("--judge-key", metavar="VARIABLE", help="environment variable that holds its key")
    group.add_argument("--judgements", type=Path, metavar="FILE", help="play recorded judgements back; ask nobody")


def run(args: argparse.Namespace) -> int:
    """Evaluates: 1 if there is no result, 2 if the request cannot be carried out."""
    from cli.ptb_run_version import model_folder  # imported here: torch and pydantic's models take seconds
    from cli.ptb_scoring import WrongRequest, read_request, score, write
    from stepwell.ptb.benchmarks import BrokenRows
    from stepwell.ptb.chat.template import NoTemplate
    from stepwell.ptb.evaluation.cells import NoReference
    from stepwell.ptb.evaluation.evaluation import EvaluationBroke
    from stepwell.ptb.evaluation.whole_model import UnusableBase
    from stepwell.ptb.evaluation.work_folder import EvaluationUnderWay, OtherEvaluation
    from stepwell.ptb.judging import BrokenRecord
    from stepwell.ptb.regimes import BrokenRegime
    from stepwell.ptb.scorers.programs.score import BrokenTests

    try:
        request = read_request(args)
        model = model_folder(args.model, request.work / "versions")
        scored = asyncio.run(score(request, model))
        is_same = write(args.out, scored)
    except (BrokenTests, EvaluationBroke, EvaluationUnderWay, NoReference) as error:
        print(f"stepwell ptb score: {error}", file=sys.stderr)
        return 1
    except (WrongRequest, BrokenRows, BrokenRecord, BrokenRegime, NoTemplate, OtherEvaluation, UnusableBase) as error:
        print(f"stepwell ptb score: {error}", file=sys.stderr)
        return 2
    if args.json:
        print(json.dumps([cell.model_dump(mode="json") for cell in scored.cells], indent=1))
        return 0
    for result in scored.results:
        print(line(result))
    print(f"{args.out}: {'as it was, to the bit' if is_same else 'written'}; answers are in {request.work}")
    return 0


def line(result: "EvaluationResult") -> str:
    """What is printed of one benchmark."""
    if result.failure is not None:
        return f"{result.benchmark}: failed: {result.failure}"
    items = sum(len(one.items) for one in result.passes)
    cut = sum(one.cut_off for one in result.passes)
    passes = ", ".join("–" if one.points is None else f"{one.points:.2f}" for one in result.passes)
    score = "unscored" if result.points is None else f"{result.points:.2f}"
    unscored = f", {result.unscored} without a score" if result.unscored else ""
    return (
        f"{result.benchmark}: {score} (passes {passes}); {items} answers{unscored}, {cut} cut off at "
        f"{result.max_tokens} tokens"
    )
