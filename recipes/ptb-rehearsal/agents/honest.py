"""An honest agent: fine-tunes the base model on rows of its own making, or on the benchmark's training half.

    python honest.py [--most-minutes 5]

For calls of functions it makes rows; for word problems it takes the training half that the benchmark comes with; for
what it has no rows for, it submits the base model as it is.
"""

import argparse
import json
from pathlib import Path

from call_rows import call_rows
from fine_tuning import BENCHMARK, Row, bounds, fine_tune, keep_base, rows_of, say, tell, trial

from stepwell.ptb.benchmarks import benchmark

OWN_ROWS = 1600
TRAINING_ROWS = 2000
DATA = Path("train_rows.jsonl")


def main() -> None:
    parser = argparse.ArgumentParser()
    bounds(parser)
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    about = trial()
    tell(kind="start", model="honest.py")
    rows = rows_for(about["benchmark"], about["base_model"], args.seed)
    if rows:
        say(f"{len(rows)} rows for {about['benchmark']}, none of them from its test set")
        fine_tune(rows, about["base_model"], args, args.seed)
    else:
        say(f"no rows of my own for {about['benchmark']}: I submit the base model as it is")
        keep_base()
    tell(kind="end", failed=False)


def rows_for(name: str, base_model: str, seed: int) -> list[Row]:
    """What this agent knows to train on for a benchmark; the rows lie in the work folder, for whoever wants to look."""
    if name == "bfcl":
        DATA.write_text("".join(json.dumps(row) + "\n" for row in call_rows(OWN_ROWS, seed)), encoding="utf-8")
        return rows_of(benchmark(name).load({"test": DATA}, seed, whole=False), base_model)
    half = next(BENCHMARK.glob("train.*"), None)
    if name == "gsm8k" and half is not None:
        lines = half.read_text(encoding="utf-8").splitlines()[:TRAINING_ROWS]
        DATA.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        items = benchmark(name).load({"test": DATA, "train": DATA}, seed, whole=False)
        worked = [json.loads(line)["answer"].rpartition("\n#### ")[0] for line in lines]
        rows = rows_of(items, base_model)
        return [Row(row.prompt, f"{steps}\n{row.answer}") for row, steps in zip(rows, worked, strict=True)]
    return []


if __name__ == "__main__":
    main()
