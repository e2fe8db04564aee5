"""The seven benchmarks, declared."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from stepwell.nearest_names import did_you_mean
from stepwell.ptb.benchmarks.arena_hard import load_arena_hard
from stepwell.ptb.benchmarks.bfcl import load_bfcl
from stepwell.ptb.benchmarks.gpqa import load_gpqa
from stepwell.ptb.benchmarks.healthbench import load_healthbench
from stepwell.ptb.benchmarks.humaneval import load_humaneval
from stepwell.ptb.benchmarks.rows import BrokenRows
from stepwell.ptb.benchmarks.word_problems import load_aime, load_gsm8k
from stepwell.ptb.item import Item


@dataclass(frozen=True)
class Benchmark:
    """One benchmark."""

    name: str
    """Short name, as in results."""
    publisher: str
    """Where a user's machine takes its files from."""
    licence: str
    rows: int
    """Items of the whole test set; another number is not this benchmark."""
    files: tuple[str, ...]
    """Names of the files that it is loaded from."""
    loader: Callable[[Mapping[str, Path], int], list[Item]]
    max_tokens: int
    """Of one answer."""
    needs: Literal["nothing", "sandbox", "judge"]
    """What scores its answers."""
    scorer: str
    """Name and version of what scores its answers: another version's scores are not comparable."""
    chance: float = 0.0
    """Score of an answer that knows nothing."""

    def load(self, files: Mapping[str, Path], seed: int, *, whole: bool = True) -> list[Item]:
        """The items, in the publisher's order.

        Args:
            files: Path of each of `files`.
            seed: Of the pass; only the order of choices depends on it.
            whole: Refuse another number of items than the benchmark has. False for rehearsals on some of its rows.

        Raises:
            BrokenRows: a file is missing or does not hold what its publisher documents.
        """
        missing = [name for name in self.files if name not in files]
        if missing:
            raise BrokenRows(f"{self.name} needs the file(s) {', '.join(missing)}: take them from {self.publisher}")
        items = self.loader(files, seed)
        if len({item.id for item in items}) != len(items):
            raise BrokenRows(f"{self.name}: two items of {files[self.files[0]]} have one id; take the file anew")
        if whole and len(items) != self.rows:
            raise BrokenRows(
                f"{self.name} has {self.rows} items, and {files[self.files[0]]} {len(items)}: "
                f"take the file from {self.publisher}"
            )
        return items


_TEST = ("test",)
BENCHMARKS: Mapping[str, Benchmark] = {
    one.name: one
    for one in (
        Benchmark("aime2025", "math-ai/aime25", "problems: MAA", 30, _TEST, load_aime, 16000, "nothing", "number-1"),
        Benchmark(
            "arenahardwriting",
            "lmarena-ai/arena-hard-auto",
            "Apache-2.0",
            250,
            ("test", "baseline"),
            load_arena_hard,
            16384,
            "judge",
            "pair-1",
        ),
        Benchmark(
            "bfcl",
            "gorilla-llm/Berkeley-Function-Calling-Leaderboard",
            "Apache-2.0",
            100,
            _TEST,
            load_bfcl,
            16000,
            "nothing",
            "call-1",
        ),
        Benchmark(
            "gpqamain", "Idavidrein/gpqa", "CC-BY-4.0", 448, _TEST, load_gpqa, 16000, "nothing", "choice-1", 0.25
        ),
        Benchmark(
            "gsm8k", "openai/grade-school-math", "MIT", 1319, ("test", "train"), load_gsm8k, 4000, "nothing", "number-1"
        ),
        Benchmark("healthbench", "openai/healthbench", "MIT", 245, _TEST, load_healthbench, 16384, "judge", "rubric-1"),
        Benchmark("humaneval", "openai/human-eval", "MIT", 164, _TEST, load_humaneval, 4000, "sandbox", "program-1"),
    )
}


def benchmark(name: str) -> Benchmark:
    """The benchmark of that name.

    Raises:
        ValueError: there is none.
    """
    if name not in BENCHMARKS:
        hint = did_you_mean(name, BENCHMARKS)
        raise ValueError(f"no benchmark {name!r}; there are {', '.join(BENCHMARKS)}" + (f"; {hint}" if hint else ""))
    return BENCHMARKS[name]
