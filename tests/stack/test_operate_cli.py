"""The operators' commands against a real run: taken, refused, without an answer, without a run."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from activities.stores import Stores
from cli import operate
from cli.main import main
from db.blobs import BlobStore
from db.ledger import Ledger
from stepwell.events import OperatorActed
from stepwell.events.streams import operator_stream
from stepwell.recipe.loading import load_recipe
from tests.stack.tiny_run import RECIPE
from workers.launch import QUIET_THREADS
from workers.runs import find_or_create, start
from workers.runtime import connect
from workers.services.addresses import Addresses

pytestmark = pytest.mark.timeout(300)


class Said(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


Command = Callable[..., Awaitable[Said]]


@pytest.fixture
def command(services_home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """A command of a user, on the session's services."""
    monkeypatch.setenv("STEPWELL_HOME", str(services_home))

    async def call(*words: str) -> Said:
        capfd.readouterr()
        code = await asyncio.to_thread(main, words)
        return Said(code, *capfd.readouterr())

    return call


@pytest.fixture
def control(services: Addresses, services_home: Path, tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A control worker."""
    with (tmp_path / "control.out").open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "cli.main", "worker", "--parent", str(os.getpid()), "control"],
            env={**QUIET_THREADS, **os.environ, "STEPWELL_HOME": str(services_home)},
            stdout=out,
            stderr=out,
        )
    yield process
    process.kill()
    process.wait()


async def test_commands_are_taken_refused_or_told_that_nobody_answers(
    services: Addresses,
    control: "subprocess.Popen[bytes]",
    command: Command,
    ledger: Ledger,
    blobs: BlobStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "tiny.toml").write_text(RECIPE)
    recipe, name = load_recipe(tmp_path / "tiny.toml"), "operated"
    client = await connect(services, identity="test")
    await find_or_create(Stores(ledger, blobs, actor="control:test/1"), recipe, name)
    handle = await start(client, name, recipe)
    monkeypatch.setattr(operate, "ANSWER_S", 120.0)
    try:
        paused = await command("pause", name, "--reason", "the disk is replaced", "--json")
        assert (paused.code, json.loads(paused.out)["state"]) == (0, "paused"), paused

        again = await command("pause", name, "--reason", "again")
        assert again.code == 1
        assert again.err.startswith("stepwell: pause was refused: the run is paused already")
        assert again.err.count("\n") == 1
        closed = await command("approve", name, "publish/1", "--reason", "seen")
        assert (closed.code, "no gate 'publish/1' is open" in closed.err) == (1, True), closed
        no_reason = await command("drain", name, "--reason", " ")
        assert (no_reason.code, "a reason is needed" in no_reason.err) == (1, True), no_reason

        for words in (
            ("limit", name, "hours=9", "--reason", "the night ends"),
            ("set", name, "run.max_staleness=0", "--reason", "exact"),
            ("skip", name, "1", "0", "--reason", "its tests are wrong"),
            ("resume", name),
        ):
            taken = await command(*words)
            assert (taken.code, taken.out.startswith(f"{name}: ")) == (0, True), taken

        acts = [each.event for each in await ledger.read(operator_stream(name))]
        assert [(act.action, act.arguments) for act in acts if isinstance(act, OperatorActed)] == [
            ("pause", {"at": "now"}),
            ("limit", {"limit": "hours", "value": 9.0}),
            ("set", {"key": "run.max_staleness", "value": 0.0}),
            ("skip", {"step": 1, "prompt": 0}),
            ("resume", {}),
        ]
        assert all(isinstance(act, OperatorActed) and "@" in act.who for act in acts)

        control.kill()
        control.wait()
        monkeypatch.setattr(operate, "ANSWER_S", 2.0)
        silent = await command("pause", name, "--reason", "nobody hears")
        assert silent.code == 1
        assert f"run {name} did not answer within 2 s: waiting for " in silent.err
        assert "The request may still be accepted" in silent.err
    finally:
        await handle.terminate("the test is over")

    over = await command("stop", name, "--reason", "too late")
    assert over.code == 2
    assert f"run {name} is not under way" in over.err
    unknown = await command("pause", f"{name}x", "--reason", "x")
    assert (unknown.code, f"did you mean '{name}'" in unknown.err) == (2, True), unknown
