"""Submissions are evaluated in real sandboxes, to the bit the same each time, whatever dies."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from activities.weights_record import NoVersion
from cli.audit_stores import audit_stores
from cli.main import main
from cli.ptb_run_version import fetch_version
from db.blobs import BlobStore
from db.ledger import Ledger
from stepwell.ptb.evaluation import EvaluationLimits, EvaluationOrder
from stepwell.ptb.evaluation.evaluation import EvaluationBroke, evaluate_submission
from stepwell.ptb.evaluation.passes import Progress
from stepwell.ptb.evaluation.sandbox import inside_command
from stepwell.ptb.evaluation.submission import accept
from stepwell.ptb.evaluation.work_folder import EvaluationUnderWay, OtherEvaluation
from stepwell.ptb.leaderboard import read_results
from stepwell.sandbox.process_tree import descendants
from tests.ptb_submissions import BASE_MODEL, edit_json, gsm8k_files, order_for, submit
from tests.recorded_batches import record_batches, recorded_recipe
from tests.stack.trainer_processes import Trainers
from workers.services.addresses import Addresses


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


async def test_a_model_that_kills_its_evaluation_has_failed_only_if_the_base_does_not(
    order: EvaluationOrder, tmp_path: Path
) -> None:
    killing = submit(tmp_path / "killing")
    edit_json(killing / "config.json", num_attention_heads=0)
    limits = EvaluationLimits(tries=1)
    alone = order.model_copy(update={"model": killing, "limits": limits})
    work = tmp_path / "work"
    with pytest.raises(EvaluationBroke, match="name its folder"):
        await evaluate_submission(alone, work)
    # Taken up: the attempt that died counts, and is not made again.
    with pytest.raises(EvaluationBroke, match="the base model itself cannot be evaluated here"):
        await evaluate_submission(alone.model_copy(update={"base": killing}), work)
    found = await evaluate_submission(alone.model_copy(update={"base": order.model}), work)
    assert found.failure is not None
    assert "died under every limit of tokens; the last time: it ended with status 1: ZeroDivisionError" in found.failure
    # The second time when the base model had shown that the machine is well.
    assert [(one.max_tokens, "status 1" in one.why) for one in found.died] == [(12, True), (12, True)]
    assert (found.points, found.passes) == (None, ())
    assert not (work / "system").exists()


async def test_a_folder_that_is_refused_has_failed_without_a_sandbox(order: EvaluationOrder, tmp_path: Path) -> None:
    model = submit(tmp_path / "model")
    (model / "tokenizer.json").unlink()
    found = await evaluate_submission(order.model_copy(update={"model": model}), tmp_path / "work")
    assert (found.submission, found.points) == (None, None)
    assert found.failure is not None
    assert found.failure.startswith("there is no tokenizer.json")
    submit(tmp_path / "other", seed=1)
    with pytest.raises(OtherEvaluation, match="name another folder"):
        await evaluate_submission(order.model_copy(update={"model": tmp_path / "other"}), tmp_path / "work")


def test_inside_there_is_no_network_no_gold_and_no_file_but_the_models(order: EvaluationOrder, tmp_path: Path) -> None:
    files = accept(order.model).files
    command = inside_command(files, tmp_path / "system", order.engine)
    probe = (
        "import json, os, socket\n"
        "def reaches(path):\n"
        "    try: return bool(os.listdir(path))\n"
        "    except OSError: return False\n"
        "def dials():\n"
        "    try: socket.create_connection(('192.0.2.1', 80), 1); return True\n"
        "    except OSError as error: return error.strerror\n"
        "def writes(path):\n"
        "    try: open(path, 'a'); return True\n"
        "    except OSError: return False\n"
        "print(json.dumps([sorted(os.listdir('/model')), dials(), sorted(os.listdir('/sys/class/net'))"
        " if os.path.exists('/sys') else [], os.getuid(), [writes(f) for f in ('/model/x', '/model/tokenizer.json',"
        f" '/opt/code/x', '/tmp/x')], reaches({str(tmp_path)!r}), reaches('/root'), reaches('/home'),"
        " sorted(k for k in os.environ if 'STEPWELL' in k), len([p for p in os.listdir('/proc') if p.isdigit()])]))"
    )
    at = command.index("-m")
    done = subprocess.run([*command[:at], "-c", probe], capture_output=True, text=True, check=True, timeout=120)
    assert json.loads(done.stdout) == [
        ["model.safetensors", "tokenizer.json"],
        "Network is unreachable",
        [],
        1000,
        [False, False, False, True],
        False,
        False,
        False,
        [],
        1,
    ]


REGIME = f"""
name = "by hand"
since = "2026-11"
rules = "v1.1"
base_models = ["{BASE_MODEL}"]
hours = 1.0
seeds = [11, 12]
judge_seeds = 1
judge = "none"
judge_effort = "none"
checks = []
votes = 1
max_tokens = {{ gsm8k = [12, 8] }}
weights = {{ gsm8k = 0.9999999999 }}
"""


def test_the_command_writes_what_a_leaderboard_reads_and_the_same_again(
    order: EvaluationOrder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "regime.toml").write_text(REGIME)
    rows = [f"gsm8k.{name}={path}" for name, path in order.files.items()]
    listed = tmp_path / "files.toml"
    add = [part for row in rows for part in ("--add", row)]
    assert main(["ptb", "files", str(listed), *add, "--rows", "gsm8k=3"]) == 0
    out = tmp_path / "base.jsonl"
    command = ["ptb", "score", str(order.model), "--base-model", BASE_MODEL, "--benchmark", "gsm8k", "--role", "base"]
    command += ["--files", str(listed), "--regime", str(tmp_path / "regime.toml"), "--out", str(out)]
    capsys.readouterr()
    assert main(command) == 0, capsys.readouterr().err
    assert "gsm8k: 0.00 (passes 0.00, 0.00); 6 answers" in capsys.readouterr().out
    written = out.read_bytes()
    again = tmp_path / "again.jsonl"
    assert main([*command[:-1], str(again), "--work", str(tmp_path / "elsewhere")]) == 0
    assert again.read_bytes() == written
    assert main(command) == 0
    assert "as it was, to the bit" in capsys.readouterr().out
    (cell,) = read_results([out]).cells
    assert (cell.role, cell.raw, cell.max_tokens, len(cell.passes)) == ("base", 0.0, 12, 2)


async def test_a_version_of_a_run_is_a_model_that_can_be_scored(
    services: Addresses, ledger: Ledger, blobs: BlobStore, fresh: Callable[[], str], tmp_path: Path
) -> None:
    run = fresh()
    await record_batches(ledger, blobs, run, recorded_recipe(), [2], seed=run)
    (tmp_path / "trained").mkdir()
    trainers = Trainers(ledger, blobs, tmp_path / "trained").another()
    await trainers.create(run)
    await trainers.train(run, 0)
    async with audit_stores(services) as stores:
        folders = [await fetch_version(stores, run, version, tmp_path / "cache") for version in (0, 1)]
        with pytest.raises(NoVersion, match="has no version 2"):
            await fetch_version(stores, run, 2, tmp_path / "cache")
    first, second = (accept(folder).facts for folder in folders)
    assert first.digest != second.digest
    assert first.files["tokenizer.json"] == second.files["tokenizer.json"]
