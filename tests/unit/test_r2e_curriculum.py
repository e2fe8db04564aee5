"""The fixed curriculum: every task once, quotas, cap, stages; the same for any order of the input."""

import hashlib
import os
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell.tasks.r2e.curriculum import (
    BATCH,
    QUOTAS,
    Bucket,
    CurriculumTask,
    UnknownPassRate,
    buckets,
    curriculum,
    difficulty,
    in_listed_order,
    repo_caps,
    stages,
)
from stepwell.tasks.r2e.rows import REPOSITORIES, repository_of

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data" / "mlperf"
LISTS = Path(os.environ.get("STEPWELL_MLPERF_DATA", BESIDE))
needs_lists = pytest.mark.skipif(
    not LISTS.is_dir(),
    reason="the benchmark's lists of ids are neither in ../shared/data/mlperf nor in $STEPWELL_MLPERF_DATA",
)
MIX = {"python-pillow/Pillow": 291, "numpy/numpy": 219, "pandas-dev/pandas": 57, "tornadoweb/tornado": 54} | {
    "scrapy/scrapy": 34,
    "aio-libs/aiohttp": 27,
    "pylons/pyramid": 10,
    "datalad/datalad": 8,
}
"""Training tasks of the benchmark by repository (NeMo-RL #3601)."""
RATES = {repo: (place + 1) / 10 for place, repo in enumerate(MIX)}


def tasks_like_the_benchmarks() -> list[CurriculumTask]:
    """700 tasks with the benchmark's repositories, made-up commits and lines."""
    made: list[CurriculumTask] = []
    for repo, count in MIX.items():
        for number in range(count):
            digest = hashlib.sha256(f"{repo}/{number}".encode()).hexdigest()
            made.append(CurriculumTask(f"{repo.replace('/', '__')}-{digest[:40]}", repo, int(digest[:2], 16) % 40))
    return made


some_tasks = st.lists(st.tuples(st.sampled_from(sorted(MIX)), st.integers(0, 60)), max_size=150).map(
    lambda drawn: [CurriculumTask(f"{repo}/{place}", repo, lines) for place, (repo, lines) in enumerate(drawn)]
)


@given(some_tasks, st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_every_task_stands_once_and_the_order_of_the_input_does_not_matter(
    tasks: list[CurriculumTask], chance: random.Random
) -> None:
    order = curriculum(tasks, RATES)
    assert Counter(order) == Counter(tasks)
    shuffled = list(tasks)
    chance.shuffle(shuffled)
    assert curriculum(shuffled, RATES) == order


def test_difficulty_is_by_pass_rate_and_lines() -> None:
    rates = {"numpy/numpy": 0.4}
    assert difficulty(CurriculumTask("a", "numpy/numpy", 5), rates) == pytest.approx(0.75 * 0.6 + 0.25 * 5 / 20)
    longest = [difficulty(CurriculumTask("a", "numpy/numpy", lines), rates) for lines in (20, 21, 4000)]
    assert longest == [pytest.approx(0.7)] * 3


def test_buckets_are_a_quarter_a_half_and_a_quarter_from_easy_to_hard() -> None:
    made = buckets(tasks_like_the_benchmarks(), RATES)
    assert {bucket: len(tasks) for bucket, tasks in made.items()} == {"easy": 175, "medium": 350, "hard": 175}
    hardest = [max(difficulty(task, RATES) for task in made[bucket]) for bucket in ("easy", "medium", "hard")]
    easiest = [min(difficulty(task, RATES) for task in made[bucket]) for bucket in ("easy", "medium", "hard")]
    assert hardest[0] <= easiest[1]
    assert hardest[1] <= easiest[2]


@pytest.mark.parametrize(
    ("batches", "counts"),
    [(40, [4, 12, 4, 4, 12, 4]), (43, [4, 14, 4, 4, 13, 4]), (2, [1, 1]), (1, [1]), (0, [])],
)
def test_each_cycle_warms_up_and_hardens(batches: int, counts: list[int]) -> None:
    found = stages(batches)
    runs = [0] * len(counts)
    place = -1
    for index, stage in enumerate(found):
        place += index == 0 or stage != found[index - 1] or batches == 2
        runs[place] += 1
    assert (len(found), runs) == (batches, counts)


def test_the_cap_gives_way_only_where_nothing_else_is_left() -> None:
    tasks = tasks_like_the_benchmarks()
    order = curriculum(tasks, RATES)
    bucket_of: dict[str, Bucket] = {
        task.id: bucket for bucket, members in buckets(tasks, RATES).items() for task in members
    }
    batches = [order[start : start + BATCH] for start in range(0, 43 * BATCH, BATCH)]
    caps = repo_caps(tasks, 43)
    assert (caps["python-pillow/Pillow"], caps["numpy/numpy"], caps["datalad/datalad"]) == (7, 6, 3)
    exact = [
        Counter(bucket_of[task.id] for task in batch) == QUOTAS[stage]
        for stage, batch in zip(stages(43), batches, strict=True)
    ]
    # Pass rates go by repository here, so that a bucket is nearly one repository's: the cap and the quotas contend.
    assert sum(exact) >= 12
    for number, batch in enumerate(batches):
        counts = Counter(task.repo for task in batch)
        if any(count > caps[repo] for repo, count in counts.items()):
            later = {task.repo for task in order[(number + 1) * BATCH :]}
            assert all(counts[repo] >= caps[repo] for repo in later), number


def test_quotas_hold_exactly_where_the_cap_does_not_contend() -> None:
    tasks = [CurriculumTask(f"{repo}/{number}", repo, number % 20) for repo in MIX for number in range(40)]
    rates = dict.fromkeys(MIX, 0.5)
    bucket_of = {task.id: bucket for bucket, members in buckets(tasks, rates).items() for task in members}
    order = curriculum(tasks, rates)
    for place, stage in enumerate(stages(20)):
        batch = order[place * BATCH : (place + 1) * BATCH]
        assert Counter(bucket_of[task.id] for task in batch) == QUOTAS[stage]


def test_what_fills_no_batch_is_appended_sorted() -> None:
    tasks = tasks_like_the_benchmarks()
    left = curriculum(tasks, RATES)[43 * BATCH :]
    assert len(left) == 12
    assert left == sorted(left, key=lambda task: (difficulty(task, RATES), task.id))


def test_the_curriculum_is_what_it_was() -> None:
    order = curriculum(tasks_like_the_benchmarks(), RATES)
    digest = hashlib.sha256("\n".join(task.id for task in order).encode()).hexdigest()
    assert digest == "9c947955fbd8ab049944b1f8970a9a02ba4df15e7b2a69977f8e0c3fd4e94e12"


def test_another_seed_gives_another_order() -> None:
    tasks = tasks_like_the_benchmarks()
    assert curriculum(tasks, RATES, seed=1) != curriculum(tasks, RATES)


@pytest.mark.parametrize("rates", [{}, {"numpy/numpy": 1.5}, {"numpy/numpy": float("nan")}])
def test_a_repository_without_a_pass_rate_is_refused(rates: dict[str, float]) -> None:
    with pytest.raises(UnknownPassRate, match="numpy/numpy"):
        curriculum([CurriculumTask("a", "numpy/numpy", 1)], rates)


def test_an_id_that_stands_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="'a'"):
        curriculum([CurriculumTask("a", "numpy/numpy", 1)] * 2, RATES)


def test_a_listed_order_names_all_that_is_missing() -> None:
    assert in_listed_order({"a": 1, "b": 2}, ["b", "a"]) == [2, 1]
    with pytest.raises(ValueError, match="2 of 3 listed ids are in no file: x, y"):
        in_listed_order({"a": 1}, ["x", "a", "y"])


@needs_lists
def test_the_published_lists_are_the_benchmarks_mix_and_share_no_task() -> None:
    train, validation = ((LISTS / f"{split}_instance_ids.txt").read_text().split() for split in ("train", "val"))
    assert (len(set(train)), len(set(validation)), set(train) & set(validation)) == (700, 251, set())
    owners = {full.partition("/")[2]: full for full in REPOSITORIES.values()}
    assert Counter(owners[repository_of(task)[0]] for task in train) == MIX


@needs_lists
def test_the_published_order_is_not_this_rules_and_is_kept_as_listed() -> None:
    listed = (LISTS / "train_instance_ids.txt").read_text().split()
    assert in_listed_order({task: task for task in sorted(listed)}, listed) == listed
    repos = [repository_of(task)[0] for task in listed]
    tasks = [CurriculumTask(task, repo, 0) for task, repo in zip(listed, repos, strict=True)]
    caps = repo_caps(tasks, len(listed) // BATCH)
    over = [
        start
        for start in range(0, len(repos), BATCH)
        if any(count > caps[repo] for repo, count in Counter(repos[start : start + BATCH]).items())
    ]
    assert len(over) == 24
