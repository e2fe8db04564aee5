"""The folder that a submission is: logs, the system's description, the recipes, and where each log comes from.

<org>/systems/<system>.json
<org>/results/<system>/qwen35_397b_grpo/result_0.txt …
<org>/benchmarks/qwen35_397b_grpo/implementations/stepwell/{README.md,<recipe>.toml …}
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from stepwell.mlperf import BENCHMARK, RULESET
from stepwell.mlperf.benchmark_log import BenchmarkLog
from stepwell.mlperf.deriving import RunFacts, config_filename
from stepwell.mlperf.lines import lines_of, mllog_text
from stepwell.mlperf.official_checks import results_folder


class PackageRefused(ValueError):
    """A folder that is not written; the message says why, and what to do."""


@dataclass(frozen=True)
class Result:
    """One run of a submission."""

    facts: RunFacts
    """Its events."""
    log: BenchmarkLog
    """What was derived from them."""


def write_package(out: Path, results: Sequence[Result], system: Mapping[str, str]) -> Path:
    """Lays a submission out.

    Args:
        out: Folder that gets a folder of the submitter's name.
        results: Its runs, in the order of their numbers.
        system: The system's description.

    Returns:
        The submitter's folder.

    Raises:
        PackageRefused: it is there, or a run is named twice.
        NoMlperfLogging: the package that writes lines is not installed.
    """
    names = [result.facts.run for result in results]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise PackageRefused(f"{twice[0]} is named twice: every result is a run of its own")
    folder = out / system["submitter"]
    if folder.exists():
        raise PackageRefused(f"{folder} is there already: name another folder with --out, or take it away")
    texts = [mllog_text(lines_of(result.log)) for result in results]
    logs = results_folder(folder, system["system_name"])
    recipes = folder / "benchmarks" / BENCHMARK / "implementations" / "stepwell"
    for each in (folder / "systems", logs, recipes):
        each.mkdir(parents=True)
    description = json.dumps(dict(system), indent=2) + "\n"
    (folder / "systems" / f"{system['system_name']}.json").write_text(description, encoding="utf-8")
    for number, (result, text) in enumerate(zip(results, texts, strict=True)):
        (logs / f"result_{number}.txt").write_text(text, encoding="utf-8")
        created = result.facts.created[1]
        (recipes / config_filename(created)).write_text(tomli_w.dumps(_told(created.recipe)), encoding="utf-8")
    (recipes / "README.md").write_text(_readme(results), encoding="utf-8")
    return folder


def _told(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe without its nulls, which TOML has not."""
    return {
        key: _told(value) if isinstance(value, Mapping) else value for key, value in recipe.items() if value is not None
    }


def _readme(results: Sequence[Result]) -> str:
    """Which run each log was derived from, and the hashes that say so."""
    rows = [
        f"| result_{number}.txt | {result.facts.run} | {config_filename(result.facts.created[1])} | "
        f"{result.facts.created[1].recipe_digest} | {_head(result.facts)} |"
        for number, result in enumerate(results)
    ]
    return "\n".join(
        [
            f"# {BENCHMARK}, rules {RULESET}",
            "",
            "Each log was derived from the ledger of its run, line by line: `stream` and `seq` name its event.",
            "`stepwell mlperf log RUN --submission FILE --check result_N.txt` derives it again and names the first",
            "line that differs; `stepwell audit verify RUN` checks the ledger.",
            "",
            "| log | run | resolved recipe | its digest | last event of the run's stream |",
            "|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


def _head(facts: RunFacts) -> str:
    """Number and hash of the run's last event: it commits to all that the log was derived from."""
    last = [envelope for envelope, _ in facts.events if envelope.stream == f"run/{facts.run}"][-1]
    return f"#{last.seq} {last.hash}"
