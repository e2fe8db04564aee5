"""What an agent starts from: its work folder, and what it can read beside it."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from stepwell.ptb.judges import file_digests
from stepwell.ptb.trials.self_evaluation import SelfEvaluation

GIVEN = ("evaluate.py",)
"""What lies in the work folder at the start, and must not be changed."""
TOOLS = "/benchmark"
"""Where the benchmark's files and tools are inside."""
BASE_MODEL = "/models/base"
"""Where the base model is inside."""
LIBRARY = "/opt/stepwell"
"""Where the library that scores is inside."""
_DIGESTS = "given.json"
_PROGRAM = f"""\
# Scores a model on the benchmark, as the final evaluation does: python evaluate.py [--model final_model] [--limit 50]
import sys

sys.path.insert(0, "{LIBRARY}")
from stepwell.ptb.trials.self_evaluation import main  # noqa: E402

sys.exit(main("{TOOLS}"))
"""
_CHECK = f"""\
# Looks for rows of the benchmark in files of yours: python {TOOLS}/contamination_check.py FOLDER
import sys

sys.path.insert(0, "{LIBRARY}")
from stepwell.ptb.trials.self_check import main  # noqa: E402

sys.exit(main("{TOOLS}"))
"""


def write_workspace(work: Path, tools: Path, evaluation: SelfEvaluation, files: Mapping[str, Path]) -> None:
    """Fills both folders, which must not exist.

    Args:
        work: What becomes the agent's work folder.
        tools: What it can read at `TOOLS`.
        evaluation: How its own evaluations are made; its files are names in `tools`.
        files: The benchmark's, copied there.

    Raises:
        OSError: the disk is full, or failed.
    """
    work.mkdir(parents=True)
    (work / "evaluate.py").write_text(_PROGRAM, encoding="utf-8")
    tools.mkdir(parents=True)
    for role, path in files.items():
        shutil.copyfile(path, tools / evaluation.files[role])
    (tools / "contamination_check.py").write_text(_CHECK, encoding="utf-8")
    (tools / "evaluation.json").write_text(evaluation.model_dump_json(indent=1), encoding="utf-8")


def note_given(root: Path, work: Path) -> dict[str, str]:
    """Notes SHA-256 by path of what must not be changed, before the agent starts, where it cannot reach.

    Args:
        root: Of the trial's files on this host.
        work: The work folder.
    """
    digests = file_digests(work, GIVEN)
    (root / _DIGESTS).write_text(json.dumps(digests, sort_keys=True), encoding="utf-8")
    return digests


def read_given(root: Path) -> dict[str, str]:
    """What `note_given` noted."""
    return json.loads((root / _DIGESTS).read_text(encoding="utf-8"))
