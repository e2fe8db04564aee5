"""A benchmark log that was handed in says what the ledger says.

It is compared, line by line, with the one that is derived from the ledger anew. What decides a result is then computed
a second time from the record, by other code than derives logs: when the run stopped, and each evaluation's accuracy.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from stepwell.audit.finding import Finding, Tally
from stepwell.audit.record import RunRecord
from stepwell.mlperf.certificate.evaluations import scored
from stepwell.mlperf.certificate.recipe import CertifiedRecipe, recipe_of
from stepwell.mlperf.certificate.stopping import stop_of
from stepwell.mlperf.log_comparison import first_difference

HOLDS = "the log is, line by line, the one that the ledger gives; its stop and its accuracies are the record's"
UNIT = "log lines"

_MARK = ":::MLLOG "


@dataclass(frozen=True)
class GivenLog:
    """A log, and what it should be."""

    name: str
    """Of its file."""
    found: Sequence[str]
    """Its lines."""
    expected: Sequence[str]
    """The lines that are derived from the ledger."""


@dataclass(frozen=True)
class _Said:
    """A line that can be read."""

    line: int
    """Its number, from 1."""
    value: Any
    time_ms: Any
    metadata: Mapping[str, Any]


def check(record: RunRecord, log: GivenLog, tally: Tally) -> None:
    """Applies the rule; a finding's place is the number of a line."""
    tally.checked += len(log.found)
    difference = first_difference(log.expected, log.found)
    if difference is not None:
        tally.findings.append(Finding(log.name, difference.line, str(difference)))
    recipe = recipe_of(record)
    if recipe is not None:
        _check_stop(record, recipe, log, tally)
        _check_accuracies(record, recipe, log, tally)


def _check_stop(record: RunRecord, recipe: CertifiedRecipe, log: GivenLog, tally: Tally) -> None:
    said, stop = _lines(log, "run_stop"), stop_of(record, recipe)
    if len(said) != 1:
        tally.findings.append(Finding(log.name, None, f"has {len(said)} lines run_stop, wanted 1"))
    if stop is None:
        return
    for line in said:
        if line.time_ms != stop.time_ms:
            what = f"says that the run stopped at {line.time_ms} ms; version {stop.version} passed, and "
            what += f"{stop.stream} #{stop.seq} makes it {stop.time_ms} ms"
            tally.findings.append(Finding(log.name, line.line, what))


def _check_accuracies(record: RunRecord, recipe: CertifiedRecipe, log: GivenLog, tally: Tally) -> None:
    recorded = {each.event.version * recipe.samples_per_step: each.event.pass_k for each in scored(record)}
    for line in _lines(log, "eval_accuracy"):
        samples = line.metadata.get("samples_count")
        wanted = recorded.get(samples) if isinstance(samples, int) else None
        if line.value != wanted:
            result = "recorded is no such evaluation" if wanted is None else f"recorded is {wanted}"
            what = f"says the accuracy {line.value} after {samples} samples; {result}"
            tally.findings.append(Finding(log.name, line.line, what))


def _lines(log: GivenLog, key: str) -> list[_Said]:
    found: list[_Said] = []
    for number, text in enumerate(log.found, start=1):
        if not text.startswith(_MARK):
            continue
        try:
            fields = json.loads(text.removeprefix(_MARK))
        except ValueError:
            continue  # no line that was derived: named already
        if isinstance(fields, dict):
            read = cast(dict[str, Any], fields)
            if read.get("key") == key:
                metadata = read.get("metadata")
                told = cast(dict[str, Any], metadata) if isinstance(metadata, dict) else {}
                found.append(_Said(number, read.get("value"), read.get("time_ms"), told))
    return found
