"""Tasks, patches, verdicts, and the results of single tests."""

import json

from pydantic import ValidationError

from stepwell.agent.turn import parse_changed_files
from stepwell.audit.provenance.generation import check_rollout, counted_turns, turn_ref
from stepwell.audit.provenance.node import Edge, EventMark, Figure, Node
from stepwell.audit.provenance.places import groups_with, refuse, rollout_of, stream_of
from stepwell.audit.provenance.reference import Ref
from stepwell.audit.provenance.run_life import RUN
from stepwell.audit.provenance.serving import read_task
from stepwell.audit.provenance.source import Fact, RunSource
from stepwell.events import RolloutEnded, RolloutGraded, RunCreated, VerdictReached
from stepwell.events.streams import parse_rollout_stream, verdict_stream
from stepwell.nearest_names import did_you_mean
from stepwell.tasks.grading.verdict import Score

NAMED = 3
"""Files of a patch that its line names."""
REPORT_CHARS = 120
"""Of a report that a line quotes."""


def task(source: RunSource, ref: Ref) -> Node:
    """A task."""
    digest, created = ref.parts[0], source.of_run(RunCreated)
    if not groups_with(source, digest):
        raise refuse(ref, "no step or validation was given it; `group/STEP/PROMPT` names the task of each")
    found = read_task(source, digest)
    marks = tuple(fact.mark for fact in created)
    if found is None:
        return Node(ref, "its blob is not stored, or no task", marks)
    figures: dict[str, Figure] = {
        "id": found.id,
        "family": found.family,
        "split": found.split,
        "tests": len(found.expected),
        "image": found.image.sha256 if found.image else None,
    }
    return Node(ref, f"{found.id}, {len(found.expected)} hidden tests", marks, figures)


def task_causes(source: RunSource, ref: Ref) -> list[Edge]:
    """The run's task set."""
    return [Edge(RUN, ref, "it is in the run's task set", fact.mark) for fact in source.of_run(RunCreated)]


def task_effects(source: RunSource, ref: Ref) -> list[Edge]:
    """The groups that worked on it; their verdicts are reached by them."""
    return [Edge(ref, group, "what was to be done", None) for group in groups_with(source, ref.parts[0])]


def patch(source: RunSource, ref: Ref) -> Node:
    """What a rollout changed."""
    check_rollout(source, ref)
    ended = source.first(stream_of(source, ref), RolloutEnded)
    name = "/".join(ref.parts)
    if ended is None:
        raise refuse(ref, f"rollout {name} did not come to an end of its own")
    figures: dict[str, Figure] = {"changed": ended.event.changed, "tree": ended.event.tree}
    data = source.blob(ended.event.changed)
    files = _changed(data)
    if files is None:
        words = f"blob {ended.event.changed[:12]}, which is not stored, or lists no files"
    else:
        figures["files"] = len(files)
        listed = ", ".join(files[:NAMED]) + (f" and {len(files) - NAMED} more" if len(files) > NAMED else "")
        words = f"changes {listed or 'nothing'}"
    return Node(ref, words, (ended.mark,), figures)


def patch_causes(source: RunSource, ref: Ref) -> list[Edge]:
    """The last turn: the work tree after it."""
    stream = stream_of(source, ref)
    ended, turns = source.first(stream, RolloutEnded), counted_turns(source, stream)
    if ended is None or not turns:
        return []
    return [Edge(turn_ref(Ref("rollout", ref.parts), turns[-1]), ref, "the work tree after it", ended.mark)]


def patch_effects(source: RunSource, ref: Ref) -> list[Edge]:
    """Its verdict."""
    ended = source.first(stream_of(source, ref), RolloutEnded)
    reached = None if ended is None else reached_verdict(source, ended.event.verdict_key)
    if ended is None or reached is None:
        return []
    return [Edge(ref, Ref("verdict", (ended.event.verdict_key,)), "the tree that was graded", ended.mark)]


def verdict(source: RunSource, ref: Ref) -> Node:
    """A verdict."""
    fact = reached_verdict(source, ref.parts[0])
    if fact is None:
        raise refuse(ref, "`rollout/STEP/PROMPT/SAMPLE` leads to each rollout's verdict")
    said, score = fact.event, _score(source, fact)
    figures: dict[str, Figure] = {
        "score": said.score,
        "timed_out": said.timed_out,
        "task": said.task,
        "tree": said.tree,
        "grader": said.grader,
        "report": said.report,
    }
    words = f"score {said.score:g}"
    if score is not None:
        figures |= {"passed": len(score.passed), "tests": len(score.outcomes)}
        words += f", {len(score.passed)} of {len(score.outcomes)} tests passed"
        words += "" if said.score > 0 else f": {_first_line(score.report)}"
    return Node(ref, words, (fact.mark,), figures)


def verdict_causes(source: RunSource, ref: Ref) -> list[Edge]:
    """Its tests, those that failed first; the trees that it is on; the task."""
    fact = reached_verdict(source, ref.parts[0])
    if fact is None:
        return []
    score = _score(source, fact)
    tests = (*score.failed, *score.passed) if score else ()
    found = [Edge(Ref("test", (ref.parts[0], test)), ref, "one of its tests", fact.mark) for test in tests]
    found += [Edge(cause, ref, "the tree that was graded", mark) for cause, mark in _patches(source, ref.parts[0])]
    return [*found, *_task_edge(source, ref, fact)]


def verdict_effects(source: RunSource, ref: Ref) -> list[Edge]:
    """Every rollout of the run with this tree."""
    found = list[Edge]()
    for name in _rollouts(source, ref.parts[0]):
        for graded in source.every(name, RolloutGraded):
            reused = ", as of the same tree before" if graded.event.reused else ""
            found.append(Edge(ref, rollout_of(name), f"its score{reused}", graded.mark))
    return found


def test(source: RunSource, ref: Ref) -> Node:
    """The result of one hidden test."""
    key, name = ref.parts
    fact = reached_verdict(source, key)
    if fact is None:
        raise refuse(ref, f"there is no verdict {key[:12]}")
    score = _score(source, fact)
    if score is None:
        raise refuse(ref, f"report {fact.event.report} of its verdict is not stored, or cannot be read")
    if name not in score.outcomes:
        meant = did_you_mean(name, score.outcomes)
        raise refuse(ref, f"{meant} its verdict has {', '.join(score.outcomes)}".strip())
    outcome = score.outcomes[name]
    return Node(ref, outcome, (fact.mark,), {"outcome": outcome, "report": fact.event.report})


def test_causes(source: RunSource, ref: Ref) -> list[Edge]:
    """The trees that it ran on, and the task that has it."""
    fact = reached_verdict(source, ref.parts[0])
    if fact is None:
        return []
    found = [Edge(cause, ref, "it ran on this tree", mark) for cause, mark in _patches(source, ref.parts[0])]
    return [*found, *_task_edge(source, ref, fact)]


def test_effects(source: RunSource, ref: Ref) -> list[Edge]:
    """Its verdict."""
    fact = reached_verdict(source, ref.parts[0])
    return [] if fact is None else [Edge(ref, Ref("verdict", ref.parts[:1]), "one of its tests", fact.mark)]


def reached_verdict(source: RunSource, key: str) -> Fact[VerdictReached] | None:
    """A verdict by its key."""
    return source.first(verdict_stream(key), VerdictReached)


def _score(source: RunSource, fact: Fact[VerdictReached]) -> Score | None:
    """What its report says; None where it is not stored, or no such report."""
    return source.remembered(("score", fact.event.report), lambda: _read_score(source.blob(fact.event.report)))


def _read_score(data: bytes | None) -> Score | None:
    try:
        return None if data is None else Score.model_validate_json(data)
    except ValidationError:
        return None


def _rollouts(source: RunSource, key: str) -> list[str]:
    """Streams of rollouts that name a verdict: first the one that it was reached for, then those that reused it."""
    return source.remembered(("rollouts", key), lambda: _sorted_rollouts(source, key))


def _sorted_rollouts(source: RunSource, key: str) -> list[str]:
    named = {mention.stream for mention in source.mentions(key)}
    own = [name for name in named if name.startswith(f"rollout/{source.run}/")]
    return sorted(own, key=lambda name: (_is_reused(source, name), parse_rollout_stream(name)))


def _is_reused(source: RunSource, rollout: str) -> bool:
    graded = source.first(rollout, RolloutGraded)
    return graded is None or graded.event.reused


def _patches(source: RunSource, key: str) -> list[tuple[Ref, EventMark]]:
    found: list[tuple[Ref, EventMark]] = []
    for name in _rollouts(source, key):
        ended = source.first(name, RolloutEnded)
        if ended is not None:
            found.append((Ref("patch", rollout_of(name).parts), ended.mark))
    return found


def _task_edge(source: RunSource, ref: Ref, fact: Fact[VerdictReached]) -> list[Edge]:
    """The run's task with the digest that the verdict names."""
    if not groups_with(source, fact.event.task):
        return []
    return [Edge(Ref("task", (fact.event.task,)), ref, "its hidden tests", fact.mark)]


def _changed(data: bytes | None) -> list[str] | None:
    try:
        return None if data is None else sorted(parse_changed_files(data))
    except (json.JSONDecodeError, ValueError, TypeError):
        return None


def _first_line(report: str) -> str:
    line = report.splitlines()[0] if report else "no report"
    return line if len(line) <= REPORT_CHARS else f"{line[:REPORT_CHARS]}…"
