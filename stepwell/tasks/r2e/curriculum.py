"""The benchmark's fixed curriculum: which task is trained at which place. Pure.

Source: the description of the reference's task selection (MLPerf Training 6.1, LLM post-training; NeMo-RL #3601): seed
20260710, batches of 16, two cycles; difficulty, buckets, quotas, shares and cap as in the constants below; what is left
over is appended, sorted. The pass rates of the repositories and the program that made the published list are not
published. So the published list of 700 ids is an order by itself (`in_listed_order`), and this rule is for sets of whom
pass rates are known. They are not the same: taken 16 at a time, 24 of the 44 batches of the list have more tasks of a
repository than the cap allows.

What the description leaves open, and was chosen here:

- *Buckets*: by difficulty, then id; a quarter of the tasks, rounded down, is easy, another hard, the rest medium.
- *Shuffling*: by the SHA-256 of seed, purpose and id: no interpreter's generator, no order of the input matters.
- *Cycles*: a task is trained once; the full batches are shared among the cycles, the first taking one more if they
  are odd. Warm-up and hardening have their share of a cycle's batches, rounded to the nearest, halves up; the core
  the rest.
- *Quotas that cannot be met*: a place whose bucket has no task under the cap is filled from the others, the nearest
  first; where no bucket has one, the cap gives way, so that every batch is full.
- *Cap*: `count` is the repository's tasks in the set, `batches` the number of full batches.
- *Left over* are the tasks that do not fill a batch, by difficulty, then id.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Literal, TypeVar

SEED = 20260710
BATCH = 16
CYCLES = 2
LINES_AT_MOST = 20
"""Changed lines beyond which a task is no harder for them."""
PASS_RATE_WEIGHT, LINES_WEIGHT = 0.75, 0.25
REPO_CAP_AT_LEAST = 3

Listed = TypeVar("Listed")
Bucket = Literal["easy", "medium", "hard"]
Stage = Literal["warmup", "core", "hardening"]

QUOTAS: Mapping[Stage, Mapping[Bucket, int]] = {
    "warmup": {"easy": 6, "medium": 8, "hard": 2},
    "core": {"easy": 4, "medium": 8, "hard": 4},
    "hardening": {"easy": 2, "medium": 8, "hard": 6},
}
"""Tasks of a batch."""
WARMUP_SHARE, HARDENING_SHARE = 0.2, 0.2
"""Of a cycle's batches."""
_OTHERS: Mapping[Bucket, tuple[Bucket, ...]] = {
    "easy": ("easy", "medium", "hard"),
    "medium": ("medium", "easy", "hard"),
    "hard": ("hard", "medium", "easy"),
}


@dataclass(frozen=True)
class CurriculumTask:
    """What the curriculum looks at."""

    id: str
    repo: str
    lines: int
    """Changed lines of the gold patch outside of tests."""


class UnknownPassRate(ValueError):
    """A repository without a pass rate, or one that is no share."""


def difficulty(task: CurriculumTask, pass_rates: Mapping[str, float]) -> float:
    """From 0, easy, to 1: `0.75 * (1 - pass rate of the repository) + 0.25 * min(lines, 20) / 20`.

    Raises:
        UnknownPassRate: the repository has none, or it is not in [0, 1].
    """
    rate = pass_rates.get(task.repo)
    if rate is None or not 0 <= rate <= 1:
        raise UnknownPassRate(
            f"the pass rate of {task.repo} is {rate}: give each repository's share of solved tasks, from 0 to 1"
        )
    return PASS_RATE_WEIGHT * (1 - rate) + LINES_WEIGHT * min(task.lines, LINES_AT_MOST) / LINES_AT_MOST


def buckets(tasks: Iterable[CurriculumTask], pass_rates: Mapping[str, float]) -> dict[Bucket, list[CurriculumTask]]:
    """The tasks by bucket, each from easy to hard. Raises UnknownPassRate."""
    order = sorted(tasks, key=lambda task: (difficulty(task, pass_rates), task.id))
    quarter = len(order) // 4
    return {
        "easy": order[:quarter],
        "medium": order[quarter : len(order) - quarter],
        "hard": order[len(order) - quarter :],
    }


def stages(batches: int) -> list[Stage]:
    """The stage of each batch."""
    first = math.ceil(batches / CYCLES)
    lengths = [first, *([batches - first] if batches > first else [])]
    found: list[Stage] = []
    for length in lengths:
        warmup, hardening = (math.floor(length * share + 0.5) for share in (WARMUP_SHARE, HARDENING_SHARE))
        core = length - warmup - hardening
        lengths_of: tuple[tuple[Stage, int], ...] = (("warmup", warmup), ("core", core), ("hardening", hardening))
        for stage, count in lengths_of:
            found.extend(repeat(stage, count))
    return found


def repo_caps(tasks: Iterable[CurriculumTask], batches: int) -> dict[str, int]:
    """Most tasks of a batch by repository: `max(3, ceil(count / batches))`."""
    counts = Counter(task.repo for task in tasks)
    return {repo: max(REPO_CAP_AT_LEAST, math.ceil(count / batches)) for repo, count in counts.items()}


def curriculum(
    tasks: Sequence[CurriculumTask], pass_rates: Mapping[str, float], *, seed: int = SEED
) -> list[CurriculumTask]:
    """All tasks in the order of training; the same tasks in any order give the same curriculum.

    Raises:
        UnknownPassRate: of a repository.
        ValueError: an id stands twice.
    """
    twice = [task for task, count in Counter(task.id for task in tasks).items() if count > 1]
    if twice:
        raise ValueError(f"{len(twice)} ids stand twice, for example {twice[0]!r}: a task is trained once")
    queues: dict[Bucket, list[CurriculumTask]] = {
        bucket: sorted(members, key=lambda task: _draw(seed, "bucket", task.id))
        for bucket, members in buckets(tasks, pass_rates).items()
    }
    batches = len(tasks) // BATCH
    caps = repo_caps(tasks, batches) if batches else {}
    order: list[CurriculumTask] = []
    for stage in stages(batches):
        batch = _batch(queues, QUOTAS[stage], caps)
        order += sorted(batch, key=lambda task: _draw(seed, "batch", task.id))
    left = [task for queue in queues.values() for task in queue]
    return order + sorted(left, key=lambda task: (difficulty(task, pass_rates), task.id))


def in_listed_order(tasks: Mapping[str, Listed], listed: Sequence[str]) -> list[Listed]:
    """The tasks of a list of ids, in its order.

    Raises:
        ValueError: ids that are not there, all of them named, or that stand twice.
    """
    missing = [task for task in listed if task not in tasks]
    if missing:
        raise ValueError(f"{len(missing)} of {len(listed)} listed ids are in no file: {', '.join(missing)}")
    if len(set(listed)) != len(listed):
        raise ValueError("an id is listed twice: a task is trained once")
    return [tasks[task] for task in listed]


def _batch(
    queues: Mapping[Bucket, list[CurriculumTask]], quota: Mapping[Bucket, int], caps: Mapping[str, int]
) -> list[CurriculumTask]:
    """Takes a batch from the heads of the queues."""
    taken: list[CurriculumTask] = []
    of_repo: Counter[str] = Counter()
    for bucket, places in quota.items():
        for _ in range(places):
            candidates = [(queues[other], task) for other in _OTHERS[bucket] for task in queues[other]]
            allowed = [one for one in candidates if of_repo[one[1].repo] < caps[one[1].repo]]
            queue, task = (allowed or candidates)[0]
            queue.remove(task)
            taken.append(task)
            of_repo[task.repo] += 1
    return taken


def _draw(seed: int, purpose: str, task: str) -> str:
    return hashlib.sha256(f"{seed}/{purpose}/{task}".encode()).hexdigest()
