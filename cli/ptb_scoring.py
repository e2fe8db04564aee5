"""What `stepwell ptb score` does: orders, evaluations, and the file of results."""

import argparse
import os
import sys
import tomllib
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from stepwell.ptb.benchmarks import benchmark
from stepwell.ptb.benchmarks.files import BrokenBenchmarkFiles, FilesOfBenchmark, load_benchmark_files
from stepwell.ptb.evaluation import EngineSettings, EvaluationOrder, EvaluationResult
from stepwell.ptb.evaluation.cells import CellOf, cell_of, evaluation_basis
from stepwell.ptb.evaluation.evaluation import evaluate_submission
from stepwell.ptb.evaluation.passes import Progress
from stepwell.ptb.judging import Judge, OpenAIJudge, RecordedJudge
from stepwell.ptb.judging.openai_judge import JudgeSettings
from stepwell.ptb.leaderboard import Basis, Cell, Configuration
from stepwell.ptb.regimes import REGIMES, Regime, load_regime, regime


class WrongRequest(ValueError):
    """What was asked for contradicts itself, the regime, or a file that is there."""


@dataclass(frozen=True)
class Request:
    """What the command names, read."""

    args: argparse.Namespace
    regime: Regime
    files: Mapping[str, FilesOfBenchmark]
    engine: EngineSettings
    of: CellOf
    work: Path
    """Has a folder for each benchmark."""


@dataclass(frozen=True)
class Scored:
    """What came of it."""

    basis: Basis
    results: tuple[EvaluationResult, ...]
    cells: tuple[Cell, ...]
    """One to each result."""

    def lines(self) -> str:
        """As a file of results."""
        return "".join(one.model_dump_json() + "\n" for one in (self.basis, *self.cells))


def read_request(args: argparse.Namespace) -> Request:
    """Reads what the command names.

    Raises:
        WrongRequest: it contradicts itself or the regime, or a file cannot be read.
        BrokenRegime: there is no such regime.
    """
    known = regime(args.regime) if args.regime in REGIMES else load_regime(Path(args.regime))
    foreign = [name for name in args.benchmark if name not in known.weights]
    if foreign:
        raise WrongRequest(f"{known.name} has no benchmark {foreign[0]!r}; it has {', '.join(known.benchmarks)}")
    if args.base_model not in known.base_models:
        raise WrongRequest(f"{args.base_model!r} is no base model of {known.name}: {', '.join(known.base_models)}")
    if (args.configuration is None) == (args.role == "agent"):
        raise WrongRequest("--configuration is of an agent's trial (--role agent), and of nothing else")
    configuration = None if args.configuration is None else _configuration(args.configuration)
    if args.judge is not None and args.judgements is not None:
        raise WrongRequest("--judge asks and --judgements asks nobody: give one of them")
    judged = [name for name in args.benchmark if benchmark(name).needs == "judge"]
    if judged and args.judge is None and args.judgements is None:
        raise WrongRequest(f"{judged[0]} is scored by a judge: give --judge URL, or --judgements FILE")
    if args.judge_key is not None and args.judge_key not in os.environ:
        raise WrongRequest(f"--judge-key names the environment variable {args.judge_key}, which is not set")
    try:
        files = load_benchmark_files(args.files)
    except BrokenBenchmarkFiles as error:
        raise WrongRequest(str(error)) from error
    lacking = [name for name in known.benchmarks if name not in files]
    if lacking:
        raise WrongRequest(f"{args.files} lacks {', '.join(lacking)}, which {known.name} has: the key covers them all")
    return Request(
        args=args,
        regime=known,
        files=files,
        engine=EngineSettings(
            kind=args.engine, dtype=args.dtype, device=args.device, threads=args.threads, at_once=args.at_once
        ),
        of=CellOf(
            run_set=args.run_set,
            trial=args.trial or f"{args.role}/{args.base_model}",
            role=args.role,
            configuration=configuration,
        ),
        work=args.work or args.out.with_name(f"{args.out.name}.work"),
    )


async def score(request: Request, model: Path) -> Scored:
    """Evaluates the model on each benchmark. Raises as `evaluate_submission` and `cell_of`."""
    async with _judge(request) as judge:
        basis = evaluation_basis(
            request.regime,
            request.files,
            request.engine,
            gpus=request.args.gpus,
            judge=judge.version,
            checks=request.args.checks,
        )
        results = [await _evaluated(request, name, model, judge) for name in dict.fromkeys(request.args.benchmark)]
    cells = tuple(cell_of(result, basis, request.of) for result in results)
    return Scored(basis, tuple(results), cells)


def write(out: Path, scored: Scored) -> bool:
    """Writes the file of results; true if it was there already, with the same bytes.

    Raises:
        WrongRequest: it was there, and has others.
    """
    lines = scored.lines()
    if not out.exists():
        out.parent.mkdir(parents=True, exist_ok=True)
        draft = out.with_name(f".{out.name}.draft")
        draft.write_text(lines, encoding="utf-8")
        draft.replace(out)
        return False
    if out.read_text(encoding="utf-8") != lines:
        raise WrongRequest(f"{out} holds other results than those that came now: nothing was written; name another")
    return True


async def _evaluated(request: Request, name: str, model: Path, judge: Judge) -> EvaluationResult:
    declared = benchmark(name)
    is_judged = declared.needs == "judge"
    order = EvaluationOrder(
        model=model,
        links="inside" if request.args.role == "agent" else "anywhere",
        base_model=request.args.base_model,
        base=request.args.base,
        benchmark=name,
        files=dict(request.files[name].paths),
        rows=request.files[name].rows,
        seeds=request.regime.seeds_of(name, request.args.seed, judged=is_judged),
        max_tokens=request.regime.max_tokens[name],
        engine=request.engine,
    )

    def heard(progress: Progress) -> None:
        if sys.stderr.isatty():
            print(f"\r{name}: {progress.answered} of {progress.of} answers", end="", file=sys.stderr, flush=True)

    result = await evaluate_submission(order, request.work / name, judge if is_judged else None, heard=heard)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return result


@asynccontextmanager
async def _judge(request: Request) -> AsyncGenerator[Judge]:
    """The judge; the regime's where none is named, which then is nobody to ask and stands in the key alone."""
    args = request.args
    if args.judgements is not None:
        yield RecordedJudge(args.judgements)
        return
    settings = JudgeSettings(
        address=args.judge or "",
        model=args.judge_model or request.regime.judge,
        effort=args.judge_effort or request.regime.judge_effort,
    )
    async with OpenAIJudge(settings, None if args.judge_key is None else os.environ[args.judge_key]) as judge:
        yield judge


def _configuration(path: Path) -> Configuration:
    try:
        return Configuration.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise WrongRequest(f"{path} cannot be read as TOML: {error}") from error
    except ValidationError as error:
        said = error.errors(include_url=False)[0]
        raise WrongRequest(
            f"{path} is no agent's configuration: {'.'.join(map(str, said['loc']))}: {said['msg']}"
        ) from error
