"""A benchmark log as lines, and the lines as text, which MLCommons' own package writes.

Every line's metadata says which event it comes from: `stream` and `seq`, and in `field` what of it; a line that the
submitter vouches for says `declared` in their place. `file` and `lineno` are not a place in the sources, which would
change with them, but the number of the line: what the official seed checker compares stays comparable between runs.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from stepwell.mlperf.benchmark_log import BenchmarkLog, Evaluation, Place, Setting, Stats, Value
from stepwell.mlperf.official_package import official

Kind = Literal["POINT_IN_TIME", "INTERVAL_START", "INTERVAL_END"]

FILE = "stepwell.mlperf"
"""`file` of every line."""


@dataclass(frozen=True)
class Line:
    """One line of a log."""

    kind: Kind
    """Point, or beginning or end of an interval."""
    key: str
    """As the rules name it."""
    value: Value | Mapping[str, float]
    """In JSON."""
    time_ms: int
    """The database's time of its event; of what is declared, that of the run's first."""
    metadata: Mapping[str, Value]
    """Where it comes from, and what its key asks for besides."""

    @property
    def source(self) -> str:
        """The event that it comes from, in words."""
        if "stream" not in self.metadata:
            return f"no event: the submitter declares {self.metadata.get('declared')}"
        return f"{self.metadata.get('field')} of {self.metadata['stream']} #{self.metadata['seq']}"


def lines_of(log: BenchmarkLog) -> list[Line]:
    """The lines, in the order in which they are told: settings, then versions as they were made, each with its
    evaluation, then the stop. Offline, all evaluations come after the training."""
    early = [each for each in log.settings if each.place is None or each.place.time_ms <= log.began.time_ms]
    late = [each for each in log.settings if each not in early]
    created = log.created
    lines = [
        Line("POINT_IN_TIME", "cache_clear", True, created.time_ms, {"declared": "cache_clear"}),
        _at("INTERVAL_START", "init_start", created, "time"),
        *(_setting(each, created) for each in early),
        _at("INTERVAL_END", "init_stop", log.began, "time"),
        _at("INTERVAL_START", "run_start", log.began, "time"),
        *(_setting(each, created) for each in late),
        *_training(log),
    ]
    lines += [line for each in log.evaluations if log.is_offline for line in _evaluation(log, each)]
    stop = log.stop
    counts = {"samples_count": log.samples, "step": stop.version}
    return [*lines, _at("INTERVAL_END", "run_stop", stop.place, "time", **counts, status=stop.status.value)]


def _training(log: BenchmarkLog) -> Iterable[Line]:
    """Steps in blocks, which end where a version is evaluated, or with the last one."""
    inline = {} if log.is_offline else {each.version: each for each in log.evaluations}
    ends = sorted({*(version for version in inline if version), log.stop.version} - {0})
    if 0 in inline:
        yield from _evaluation(log, inline[0])
    begin, place = 0, log.began
    for end in ends:
        samples = (end - begin) * log.samples_per_step
        yield _at("INTERVAL_START", "block_start", place, "time", samples_count=samples, step=begin)
        for step in log.steps:
            if begin < step.version <= end:
                count = {"samples_count": step.version * log.samples_per_step, "step": step.version}
                yield from (_stats(each, **count) for each in step.stats)
                place = step.trained
        yield _at("INTERVAL_END", "block_stop", place, "time", samples_count=samples, step=end)
        if end in inline:
            yield from _evaluation(log, inline[end])
        begin = end


def _evaluation(log: BenchmarkLog, each: Evaluation) -> Iterable[Line]:
    samples = each.version * log.samples_per_step
    yield _at("INTERVAL_START", "eval_start", each.opened, "time", samples_count=samples, step=each.version)
    yield from (_stats(stats, samples_count=samples, step=each.version) for stats in each.stats)
    accuracy = {"stream": each.recorded.stream, "seq": each.recorded.seq, "field": "pass_k", "samples_count": samples}
    yield Line("POINT_IN_TIME", "eval_accuracy", each.pass_k, each.recorded.time_ms, accuracy)
    yield _at("INTERVAL_END", "eval_stop", each.recorded, "time", samples_count=samples, step=each.version)


def _at(kind: Kind, key: str, place: Place, field: str, **more: Value) -> Line:
    return Line(kind, key, None, place.time_ms, {"stream": place.stream, "seq": place.seq, "field": field, **more})


def _setting(setting: Setting, created: Place) -> Line:
    if setting.place is None:
        return Line("POINT_IN_TIME", setting.key, setting.value, created.time_ms, {"declared": setting.said_by})
    place = setting.place
    origin: dict[str, Value] = {"stream": place.stream, "seq": place.seq, "field": setting.said_by}
    return Line("POINT_IN_TIME", setting.key, setting.value, place.time_ms, origin)


def _stats(stats: Stats, **count: int) -> Line:
    place = stats.place
    origin: dict[str, Value] = {"stream": place.stream, "seq": place.seq, "field": stats.said_by, **count}
    return Line("POINT_IN_TIME", "tracked_stats", stats.numbers, place.time_ms, origin)


class _Collector(logging.Handler):
    """Keeps the lines that the official logger writes."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Takes a line; of what else the logger says, an error is one, and a warning that we name the file is not."""
        if record.levelno == logging.INFO:
            self.lines.append(record.getMessage())
        elif record.levelno >= logging.ERROR:
            raise ValueError(f"mlperf-logging cannot write a line: {record.getMessage()}")


def mllog_text(lines: Sequence[Line]) -> str:
    """The log, as mlperf-logging writes it.

    Raises:
        NoMlperfLogging: the package is not installed.
    """
    collector, logger = _Collector(), logging.Logger("stepwell.mlperf", logging.INFO)
    logger.addHandler(collector)
    writer: Any = official("mllog.mllog").MLLogger(logger=logger)
    verbs: dict[Kind, Callable[..., None]] = {
        "POINT_IN_TIME": writer.event,
        "INTERVAL_START": writer.start,
        "INTERVAL_END": writer.end,
    }
    for number, line in enumerate(lines, 1):
        value = dict(line.value) if isinstance(line.value, Mapping) else line.value
        metadata = {"file": FILE, "lineno": number, **line.metadata}
        verbs[line.kind](line.key, value, metadata=metadata, time_ms=line.time_ms)
    return "".join(f"{line}\n" for line in collector.lines)
