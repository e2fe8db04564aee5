"""What an agent runs to look for the benchmark's rows in its own data: by words, as its submission is checked."""

import argparse
import json
import sys
from pathlib import Path

from stepwell.ptb.contamination import check_folder, load_benchmark
from stepwell.ptb.trials.self_evaluation import SelfEvaluation


def main(folder: str) -> int:
    """Looks; 1 if more rows are found than pass as accidents, or nothing could be read.

    Args:
        folder: Of the benchmark.
    """
    settings = SelfEvaluation.model_validate_json((Path(folder) / "evaluation.json").read_text(encoding="utf-8"))
    parser = argparse.ArgumentParser(description=f"Looks for rows of {settings.benchmark} in files.")
    parser.add_argument("data", type=Path, help="file or folder")
    args = parser.parse_args()
    report = check_folder(args.data, load_benchmark([Path(folder) / settings.files["test"]]))
    for leak in report.leaks:
        found = {"path": leak.path, "row": leak.row, "item": leak.item, "kind": leak.kind, "score": leak.score}
        sys.stdout.write(json.dumps(found) + "\n")
    counts = f"{report.verdict.value}: {len(report.leaks)} leaks in {report.scanned_rows} rows"
    sys.stderr.write(f"{counts}; not scanned: {report.reasons()}\n")
    return 0 if report.passed else 1
