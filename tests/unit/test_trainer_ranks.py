"""A trainer of two processes: the same update in every rank, and what becomes of it when one is lost."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from pydantic import ValidationError

from stepwell.policy.trainers.protocol import NonFinite, RankLost, TrainBatch, TrainerClosed, WrongParent
from stepwell.policy.trainers.rank_exchange import RankExchange, open_meeting
from stepwell.policy.trainers.rank_messages import Join, RankSpec, Ready
from stepwell.policy.trainers.rank_peers import START_S, RankPeers
from stepwell.policy.trainers.ranked_trainer import RankedTrainer
from stepwell.policy.weights import DigestMismatch
from stepwell.recipe.trainer_section import TrainerSection
from stepwell.rl.config import GrpoConfig, PackingConfig
from tests.small_models import OPTIMISER, REWARDS, make_batch, make_folder, make_samples, make_trainer

NARROW = PackingConfig(micro_batch_tokens=64, pad_multiple=8)
"""So that there is something to deal."""
RAW = GrpoConfig(importance="none", mismatch_max=None, normalise="none")
TIMEOUT_S = 10.0

Start = Callable[[], RankedTrainer]


@dataclass(frozen=True)
class Shared:
    """A trainer of two ranks, and what takes it back."""

    trainer: RankedTrainer
    version_0: Path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("model") / "qwen3")


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    """Starts trainers of two ranks, which end with the test."""
    started: list[RankedTrainer] = []

    def start() -> RankedTrainer:
        started.append(_start(folder))
        return started[-1]

    yield start
    for trainer in started:
        trainer.close()
        trainer.close()


@pytest.fixture(scope="module")
def shared(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """One for all tests that leave it whole: a rank takes seconds to start."""
    trainer = _start(folder)
    version_0 = tmp_path_factory.mktemp("checkpoint") / "0"
    trainer.save_checkpoint(version_0)
    yield Shared(trainer, version_0)
    trainer.close()
    assert other_ranks() == []


@pytest.fixture
def trainer(shared: Shared) -> RankedTrainer:
    """The shared one, at version 0."""
    shared.trainer.load_checkpoint(shared.version_0)
    return shared.trainer


def _start(folder: Path) -> RankedTrainer:
    return RankedTrainer.from_folder(folder, OPTIMISER, RAW, threads=1, ranks=2, timeout_s=TIMEOUT_S)


def other_ranks() -> list[psutil.Process]:
    """The processes of ranks 1 and up."""
    return [
        child
        for child in psutil.Process().children()
        if child.status() != psutil.STATUS_ZOMBIE and any("rank_process" in word for word in child.cmdline())
    ]


def batch_at(version: int, rewards: list[float] = REWARDS) -> TrainBatch:
    samples = make_samples(len(rewards), seed=version)
    return make_batch(samples, rewards, version=version, grpo=RAW, packing=NARROW)


def large_batch() -> TrainBatch:
    """One that takes a while."""
    return batch_at(0, [float(index % 2) for index in range(2000)])


def test_two_ranks_train_as_one_does_and_as_two_did_before(
    folder: Path, trainer: RankedTrainer, tmp_path: Path
) -> None:
    alone = make_trainer(folder, RAW)
    one, two = alone.step(batch_at(0)), trainer.step(batch_at(0))
    # What is measured of each micro-batch is added in the manifest's order, whoever computed it.
    measured = {"loss", "mismatch_mean", "entropy", "tokens", "loss_tokens", "learning_rate"}
    assert one.model_dump(include=measured) == two.model_dump(include=measured)
    assert two.grad_norm == pytest.approx(one.grad_norm, rel=1e-4)
    assert trainer.environment.ranks == 2
    assert trainer.environment.model_copy(update={"ranks": 1}) == alone.environment
    trainer.save_checkpoint(tmp_path / "checkpoint")
    trainer.step(batch_at(1))
    straight = trainer.digests()
    trainer.load_checkpoint(tmp_path / "checkpoint")
    assert trainer.version == 1
    trainer.step(batch_at(1))
    assert trainer.digests() == straight


def test_refused_gradient_changes_nothing_in_any_rank(trainer: RankedTrainer) -> None:
    before = trainer.digests()
    with pytest.raises(NonFinite, match="gradient is not finite"):
        trainer.step(batch_at(0, [reward * 1e35 for reward in REWARDS]))
    assert (trainer.version, trainer.digests()) == (0, before)
    trainer.step(batch_at(0))
    assert trainer.version == 1


@pytest.mark.parametrize("group", [0, 2])
def test_loss_that_one_rank_refuses_is_trained_by_none(trainer: RankedTrainer, group: int) -> None:
    huge = [reward * (1e38 if index // 4 == group else 1) for index, reward in enumerate(REWARDS)]
    with pytest.raises(NonFinite, match=f"the loss is .*inf.*rollout/r/0/{group}/"):
        trainer.step(batch_at(0, huge))
    with pytest.raises(WrongParent):
        trainer.step(batch_at(3))
    trainer.step(batch_at(0))
    assert trainer.version == 1


def test_damaged_checkpoint_is_refused_by_all(trainer: RankedTrainer, tmp_path: Path) -> None:
    trainer.save_checkpoint(tmp_path / "checkpoint")
    damaged = bytearray((tmp_path / "checkpoint" / "masters.safetensors").read_bytes())
    damaged[-3] ^= 1
    (tmp_path / "checkpoint" / "masters.safetensors").write_bytes(damaged)
    with pytest.raises(DigestMismatch):
        trainer.load_checkpoint(tmp_path / "checkpoint")
    trainer.step(batch_at(0))
    assert trainer.version == 1


@pytest.mark.parametrize(
    ("moment", "signal"),
    [
        ("during", "kill"),
        ("during", "suspend"),
        pytest.param("before", "kill", marks=pytest.mark.long),
        pytest.param("before", "suspend", marks=pytest.mark.long),
    ],
)
def test_lost_rank_is_noticed(moment: str, signal: str, start: Start) -> None:
    others = other_ranks()
    trainer = start()
    (rank,) = [each for each in other_ranks() if each not in others]
    busy = large_batch()
    strike = getattr(rank, signal)
    if moment == "before":
        strike()
    else:
        threading.Timer(0.5, strike).start()
    began = time.monotonic()
    wanted = "ended with status -9|a rank was lost" if signal == "kill" else "no sign of life for 10 s|a rank was lost"
    with pytest.raises(RankLost, match=wanted):
        trainer.step(busy)
    assert time.monotonic() - began < 100
    trainer.close()
    assert not rank.is_running() or rank.status() == psutil.STATUS_ZOMBIE


def test_rank_that_came_to_other_weights_is_named(folder: Path, tmp_path: Path) -> None:
    peers = RankPeers(RankSpec(0, 2, TIMEOUT_S, folder, OPTIMISER, RAW, 1, "float32", False, 0))
    try:
        peers.gather(Ready, START_S)
        meeting = open_meeting(2, 30.0)
        peers.tell(Join(meeting.port))
        other = make_trainer(make_folder(tmp_path / "other", seed=1), RAW)
        trainer = RankedTrainer(other, peers, RankExchange(meeting, 0, 2, 30.0), 2)
        peers.gather(Ready)
        with pytest.raises(DigestMismatch, match=r"rank 1 of the trainer holds .*, rank 0 holds .* after the same"):
            trainer.step(batch_at(0))
        trainer.close()
    finally:
        peers.kill()


def test_close_ends_a_step_in_another_thread(start: Start) -> None:
    trainer = start()
    caught: list[BaseException] = []

    def work() -> None:
        try:
            trainer.step(large_batch())
        except (RankLost, TrainerClosed) as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(1.0)
    trainer.close()
    thread.join(timeout=60)
    assert not thread.is_alive()
    assert len(caught) == 1


def test_keys_of_ranks_that_would_do_nothing_are_refused() -> None:
    assert TrainerSection(ranks=2).rank_timeout_s == 60.0
    assert TrainerSection.model_validate(TrainerSection(ranks=2).model_dump()).rank_timeout_s == 60.0
    assert TrainerSection().rank_timeout_s is None
    with pytest.raises(ValidationError, match="rank_timeout_s would do nothing"):
        TrainerSection(rank_timeout_s=5.0)
