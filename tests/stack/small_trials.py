"""Run sets small enough for a test: a tiny base model, made-up rows, scripted agents, a judge on this machine."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
import pytest_asyncio
from aiohttp import web

from db.ledger import Ledger
from db.recorded import Recorded
from stepwell.policy.engine_http.server import listen
from stepwell.ptb.benchmarks.files import write_benchmark_files
from stepwell.ptb.supervisor import end_all
from tests.ptb_rows import bfcl_row, write_lines
from tests.ptb_submissions import BASE_MODEL, submit
from workers.services.addresses import Addresses
from workers.services.home import Home
from workers.services.plan import launcher_argv

AGENT = Path(__file__).with_name("scripted_agent.py")
"""What the agents run: does what its first argument says."""
PATIENCE_S = 900.0
"""A machine under load is no failure of what is tested."""
ROWS = 2
QUESTIONS = (
    "A farmer has three red hens and four white hens, and buys five more at the market; how many hens are there now?",
    "Nina reads twelve pages on each of six days and then loses her place; how many pages has she read by then?",
)
"""Long enough for the check of contamination to tell them."""

REGIME = f"""
name = "small"
since = "2026-11"
rules = "v1.1"
base_models = ["{BASE_MODEL}"]
hours = 0.5
seeds = [11]
judge_seeds = 1
judge = "none"
judge_effort = "none"
checks = ["contamination", "model"]
votes = 3

[max_tokens]
gsm8k = [4]
bfcl = [4]

[weights]
gsm8k = 0.5
bfcl = 0.5
"""

RECIPE = """
name = "small"
regime = "regime.toml"
files = "files.toml"
benchmarks = ["gsm8k"]
concurrency = 2
references = {references}

[models."{model}"]
base = "base"

[judges]
address = "{judge}"
model = "scripted"
charges = ["lookup"]

[evaluation.engine]
at_once = 2
max_context = 4096

[failures]
attempts = 3
lease_s = 60.0
"""

AGENT_SECTION = """
[[agents]]
name = "{name}"
scaffold = "shell"
model = "none"
command = ["python", "/agent/scripted_agent.py", "{name}"]
mounts = [{{source = "{source}", at = "/agent"}}]
"""


@dataclass
class SmallTrials:
    """`stepwell ptb run` as a process, with its ledger to look at and its workers to kill."""

    home: Path
    ledger: Ledger
    folder: Path
    judge: str
    """Address of the judge."""
    name: str = ""
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def output(self) -> str:
        """What the command printed, and the workers' logs."""
        logs = sorted((Home.of(self.home).root / "run-sets" / self.name / "logs").glob("*.log"))
        return "\n".join(path.read_text(errors="replace") for path in [self.folder / "out", *logs] if path.is_file())

    def write(self, *agents: str, references: tuple[str, ...] = ()) -> Path:
        """The recipe, and all that it names."""
        tests: list[dict[str, object]] = [
            {"question": question, "answer": f"So it is.\n#### {number}"} for number, question in enumerate(QUESTIONS)
        ]
        train: list[dict[str, object]] = [
            {"question": f"How many, {number}?", "answer": f"So.\n#### {number}"} for number in range(2)
        ]
        calls = [bfcl_row("f(x=1)", {"x": {"type": "integer", "description": "a number"}})]
        files = {
            "gsm8k": {
                "test": write_lines(self.folder / "test.jsonl", tests),
                "train": write_lines(self.folder / "train.jsonl", train),
            },
            "bfcl": {"test": write_lines(self.folder / "calls.jsonl", calls)},
        }
        write_benchmark_files(self.folder / "files.toml", files, {"gsm8k": ROWS, "bfcl": 1})
        submit(self.folder / "base")
        (self.folder / "regime.toml").write_text(REGIME)
        source = self.folder / "agent"
        source.mkdir()
        (source / AGENT.name).write_bytes(AGENT.read_bytes())
        sections = [AGENT_SECTION.format(name=name, source=source) for name in agents]
        recipe = self.folder / "small.toml"
        top = RECIPE.format(model=BASE_MODEL, judge=self.judge, references=list(references))
        recipe.write_text("\n".join([top, *sections]))
        return recipe

    def start(self, name: str, recipe: Path) -> None:
        """Starts, or goes on with, a run set."""
        self.name = name
        with (self.folder / "out").open("ab") as out:
            self.process = subprocess.Popen(
                launcher_argv(
                    [sys.executable, "-m", "cli.main", "ptb", "run", str(recipe), "--name", name],
                    death_signal=signal.SIGKILL,
                    identity=None,
                ),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**os.environ, "STEPWELL_HOME": str(self.home)},
                start_new_session=True,
            )

    async def until(self, happened: Callable[[list[Recorded]], bool]) -> list[Recorded]:
        """Waits until the trials' events are so that `happened`; they are returned."""
        deadline = time.monotonic() + PATIENCE_S
        while not happened(events := await self.events()):
            assert self.process is not None
            assert self.process.poll() is None, self.output
            assert time.monotonic() < deadline, self.output
            await asyncio.sleep(0.1)
        return events

    async def events(self) -> list[Recorded]:
        """Every event of the run set's trials."""
        return await self.ledger.read_prefix(f"trial/{self.name}/")

    def worker(self, kind: str) -> psutil.Process:
        """The process of a worker."""
        assert self.process is not None
        for child in psutil.Process(self.process.pid).children():
            with contextlib.suppress(psutil.NoSuchProcess):
                if f"worker --parent {self.process.pid} {kind}" in " ".join(child.cmdline()):
                    return child
        raise AssertionError(f"no {kind} worker: {self.output}")

    async def finish(self) -> int:
        """Waits for the command to end; its exit code."""
        assert self.process is not None
        deadline = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.output
            await asyncio.sleep(0.1)
        return self.process.returncode

    def call(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """`stepwell ptb …`."""
        return subprocess.run(
            [sys.executable, "-m", "cli.main", "ptb", *arguments],
            env={**os.environ, "STEPWELL_HOME": str(self.home)},
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def trials(self) -> Path:
        """Folder of the trials' files on this host."""
        return Home.of(self.home).root / "trials" / self.name

    def close(self) -> None:
        """Ends the command if it still runs, and every agent that is left."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for start in sorted(self.trials.glob("*/*")):
            end_all(start, "the test is over")
            end_all(start / "test", "the test is over")


@pytest_asyncio.fixture
async def judge_address() -> AsyncIterator[str]:
    """A judge that finds nothing, behind an address that speaks OpenAI's chat completions."""

    async def answer(request: web.Request) -> web.Response:
        asked = json.loads(await request.text())["messages"][-1]["content"]
        charge = asked.rsplit("The charge is '", 1)[1].partition("'")[0]
        verdict = {"charge": charge, "violation": False, "justification": "none", "citations": [], "certainty": "high"}
        choice = {"message": {"role": "assistant", "content": json.dumps(verdict)}, "finish_reason": "stop"}
        return web.json_response({"choices": [choice]})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    listening = await listen(app)
    yield f"{listening.url}/v1"
    await listening.close()


@pytest.fixture
def small_trials(
    services: Addresses, services_home: Path, ledger: Ledger, tmp_path: Path, judge_address: str
) -> Iterator[SmallTrials]:
    """Run sets that end with the test, whatever becomes of it."""
    trials = SmallTrials(services_home, ledger, tmp_path, judge_address)
    yield trials
    trials.close()
