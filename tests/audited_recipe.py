"""A made-up run set's recipe, basis and pieces: one base model, one benchmark, a reference and two agents."""

from collections.abc import Sequence

from stepwell.events.canonical import digest_of_json
from stepwell.ptb.contamination.report import Report
from stepwell.ptb.evaluation import Answer, ItemOutcome, PassResult
from stepwell.ptb.identity.report import IdentityReport
from stepwell.ptb.judging.openai_judge import JudgeSettings
from stepwell.ptb.leaderboard.records import Basis
from stepwell.ptb.regimes import regime
from stepwell.ptb.seeds import sample_seed
from stepwell.ptb.trials import RunSetRecipe

MODEL = "Qwen/Qwen3-1.7B-Base"
REGIME = regime("v1.2")
RECIPE = RunSetRecipe.model_validate(
    {
        "name": "small",
        "regime": "v1.2",
        "files": "/files.toml",
        "hours": 2.0,
        "base_models": [MODEL],
        "benchmarks": ["gsm8k"],
        "reference_models": [MODEL],
        "reference_benchmarks": ["gsm8k"],
        "models": {MODEL: {"base": "/base"}},
        "agents": [
            {"name": name, "scaffold": "shell", "model": "none", "command": ["true"]} for name in ("honest", "leaker")
        ],
        "judges": {"address": "http://127.0.0.1:1/v1", "model": "j", "charges": ["lookup"]},
    }
)
JUDGE = JudgeSettings("http://127.0.0.1:1/v1", "j").version
DATA = "digest-of-gsm8k"
BASIS = Basis(
    regime="v1.2",
    rules="v1.1",
    hours=2,
    gpus=0,
    base_models=(MODEL,),
    weights={"gsm8k": 1.0},
    seeds=REGIME.seeds,
    data={"gsm8k": DATA},
    scorers={"gsm8k": "number-1"},
    templates={MODEL: "template"},
    environment="here",
    checks=(*RECIPE.checks.versions, f"lookup by {JUDGE}"),
)
DIGESTS = {f"base/{MODEL}": "b", "benchmark/gsm8k": DATA, "regime": digest_of_json(REGIME.model_dump(mode="json"))}
BASE, HONEST, LEAKER = (cell.name for cell in RECIPE.cells())
PROMPT = "Post-train it."
IDENTICAL = IdentityReport(differences=(), tensors=(), unread=(), missing=(), unread_share=0.0)
"""Nothing was compared: its verdict is that nothing can be said."""
CLEAN = Report(
    leaks=(),
    scanned_files=1,
    scanned_rows=7,
    scanned_words=99,
    unscanned=(),
    items=2,
    unindexed=(),
    embedded=0,
    not_embedded=0,
)


def weights_of(run_set: str, cell: str) -> bytes:
    """What stands for a trial's weights."""
    return f"{run_set} {cell}".encode()


def scored_pass(seed: int, worths: Sequence[float | None]) -> PassResult:
    """A pass whose answers were worth this."""
    known = [worth for worth in worths if worth is not None]
    points, unknown = 100 * sum(known) / len(worths), len(worths) - len(known)
    items = tuple(
        ItemOutcome(
            item=f"gsm8k/{number}",
            seed=sample_seed(seed, f"gsm8k/{number}"),
            answer=Answer(text="ANSWER: 1", end="stop", prompt_tokens=9, tokens=3),
            value=worth,
            why="as it says",
            weight=1.0,
        )
        for number, worth in enumerate(worths)
    )
    high = points + 100 * unknown / len(worths)
    return PassResult(
        seed=seed,
        points=None if unknown else points,
        low=points,
        high=high,
        unscored=unknown,
        disagreeing=0,
        items=items,
    )
