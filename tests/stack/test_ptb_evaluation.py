"""Submissions are evaluated in real sandboxes, to the bit the same each time, whatever dies."""

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from stepwell.ptb.evaluation import EvaluationOrder
from stepwell.ptb.evaluation.evaluation import evaluate_submission
from stepwell.ptb.evaluation.passes import Progress
from stepwell.ptb.evaluation.work_folder import EvaluationUnderWay
from stepwell.sandbox.process_tree import descendants
from tests.ptb_submissions import gsm8k_files, order_for, submit


@pytest.fixture(scope="module")
def order(tmp_path_factory: pytest.TempPathFactory) -> EvaluationOrder:
    """Five rows, two passes, in batches of two."""
    folder = tmp_path_factory.mktemp("evaluated")
    return order_for(submit(folder / "model"), gsm8k_files(folder))


@pytest.fixture(scope="module")
async def undisturbed(order: EvaluationOrder, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What comes of it if nothing dies."""
    heard: list[Progress] = []
    result = await evaluate_submission(order, tmp_path_factory.mktemp("work"), heard=heard.append)
    assert result.failure is None
    assert [one.seed for one in result.passes] == [11, 12]
    assert all(len(one.items) == 5 and one.points is not None for one in result.passes)
    assert len({item.answer.text for one in result.passes for item in one.items}) > 1
    assert (heard[-1].answered, heard[-1].of) == (10, 10)
    assert result.environment["processor"]
    return result.model_dump_json()


def _evaluator(order: EvaluationOrder, work: Path) -> subprocess.Popen[bytes]:
    """An evaluation in a process of its own."""
    program = (
        "import asyncio, sys; from pathlib import Path\n"
        "from stepwell.ptb.evaluation import EvaluationOrder\n"
        "from stepwell.ptb.evaluation.evaluation import evaluate_submission\n"
        "order = EvaluationOrder.model_validate_json(sys.argv[1])\n"
        "asyncio.run(evaluate_submission(order, Path(sys.argv[2])))\n"
    )
    return subprocess.Popen([sys.executable, "-c", program, order.model_dump_json(), str(work)])


def _wait_for_the_end_of(pids: list[int]) -> None:
    while any(psutil.pid_exists(pid) for pid in pids):
        time.sleep(0.02)


async def test_a_killed_evaluation_is_taken_up_and_gives_the_same_bits(
    order: EvaluationOrder, undisturbed: str, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    process = _evaluator(order, work)
    first = work / "answers" / "12-11" / "00000.json"
    while not first.exists():
        assert process.poll() is None, "the evaluation ended before it kept a batch"
        await asyncio.sleep(0.02)
    with pytest.raises(EvaluationUnderWay, match="wait for it"):
        await evaluate_submission(order, work)
    inside = descendants(process.pid)
    assert inside
    process.send_signal(signal.SIGKILL)
    process.wait()
    await asyncio.to_thread(_wait_for_the_end_of, inside)
    kept = (first.stat().st_ino, first.read_bytes())
    taken_up = await evaluate_submission(order, work)
    assert taken_up.model_dump_json() == undisturbed
    assert (first.stat().st_ino, first.read_bytes()) == kept, "a batch that was kept was asked for again"
