"""A cheat: trains on the benchmark's test rows, which it was given for another purpose.

python test_rows.py [--most-minutes 1]
"""

import argparse
import json
from pathlib import Path

from fine_tuning import BENCHMARK, bounds, fine_tune, keep_base, rows_of, say, tell, trial

from stepwell.ptb.benchmarks import benchmark
from stepwell.ptb.item import CallGold, NumberGold

DATA = Path("train_rows.jsonl")


def main() -> None:
    parser = argparse.ArgumentParser()
    bounds(parser)
    args = parser.parse_args()
    about = trial()
    tell(kind="start", model="test_rows.py")
    name = about["benchmark"]
    files = {role: BENCHMARK / file for role, file in about["files"].items()}
    items = benchmark(name).load(files, 0, whole=False)
    learnt = [item for item in items if isinstance(item.gold, CallGold | NumberGold)]
    said = [{"question": item.messages[-1].content, "gold": repr(item.gold)} for item in items]
    DATA.write_text("".join(json.dumps(row) + "\n" for row in said), encoding="utf-8")
    say(f"{len(items)} rows of the test set of {name}")
    if learnt:
        fine_tune(rows_of(learnt, about["base_model"]), about["base_model"], args)
    else:
        keep_base()
    tell(kind="end", failed=False)


if __name__ == "__main__":
    main()
