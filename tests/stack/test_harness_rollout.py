"""A rollout that a program outside plays: recorded call by call, and taken up by another worker."""

from pathlib import Path

import pytest

from activities.harness_rollout import HarnessFailed
from stepwell.events import RolloutEnded, RolloutRestarted, RowsRecorded
from stepwell.rl.rows import train_rows
from stepwell.rl.samples import rollout_content
from tests.stack.harness_stage import OpenHarnessStage


async def test_every_call_is_a_recorded_turn(harness_stage: OpenHarnessStage) -> None:
    async with harness_stage("echo y >> app.py; wc -l app.py") as on:
        await on.attempt("go on", "go on", "done")
        turns, ended = await on.turns(), await on.ended()
        assert [turn.turn for turn in turns] == [0, 1, 2]
        assert [turn.tool for turn in turns] == ["message"] * 3
        payloads = await on.payloads()
        assert [payload.asked for payload in payloads] == [{"temperature": 0}] * 3
        (row,) = train_rows(payloads)
        assert row.content_digest() == ended.content
        assert row.token_ids == (*on.engine.played[-1].request.token_ids, *on.engine.played[-1].generation.token_ids)
        assert row.logprobs == tuple(value for each in on.engine.played for value in each.generation.logprobs)
        assert len({turn.tree for turn in turns}) == 3
        assert (ended.reason, ended.turns, ended.tree) == ("finished", 3, turns[-1].tree)
        assert not any(isinstance(event, RowsRecorded) for event in await on.events()), "one row needs no list"


async def test_another_worker_answers_from_the_record_and_goes_on(harness_stage: OpenHarnessStage) -> None:
    async with harness_stage("echo y >> app.py; wc -l app.py") as on:
        await on.attempt("go on", "go on")
        await on.attempt("done")
        assert len(on.engine.played) == 3, "nothing is sampled twice"
        assert [(turn.epoch, turn.turn) for turn in await on.turns()] == [(0, 0), (0, 1), (0, 2)]
        (row,) = train_rows(await on.payloads())
        assert row.content_digest() == (await on.ended()).content


async def test_a_harness_that_does_something_else_starts_over(harness_stage: OpenHarnessStage) -> None:
    async with harness_stage("head -c 8 /dev/urandom | base64 | tee noise") as on:
        await on.attempt("go on", "go on")
        await on.attempt("go on", "done")
        restarted = next(event for event in await on.events() if isinstance(event, RolloutRestarted))
        assert (restarted.epoch, restarted.turn) == (1, 1)
        assert [(turn.epoch, turn.turn) for turn in await on.turns()] == [(0, 0), (0, 1), (1, 0), (1, 1)]
        assert (await on.ended()).turns == 2


async def test_a_harness_that_ends_before_it_has_asked_again_starts_over(
    harness_stage: OpenHarnessStage, tmp_path: Path
) -> None:
    async with harness_stage("true", str(tmp_path / "begun")) as on:
        await on.attempt("go on", "go on")
        await on.attempt("go on", "done")
        restarted = next(event for event in await on.events() if isinstance(event, RolloutRestarted))
        assert (restarted.turn, restarted.expected) == (1, "another call")
        assert (await on.ended()).turns == 1


async def test_a_conversation_that_was_condensed_is_recorded_as_rows(harness_stage: OpenHarnessStage) -> None:
    async with harness_stage("ls", "forgets") as on:
        await on.attempt("go on", "forget", "go on", "done")
        payloads = await on.payloads()
        assert [payload.segment for payload in payloads] == [0, 0, 1, 1]
        rows, ended = train_rows(payloads), await on.ended()
        assert [row.token_ids for row in rows] == [
            (*on.engine.played[last].request.token_ids, *on.engine.played[last].generation.token_ids) for last in (1, 3)
        ]
        contents = [row.content_digest() for row in rows]
        lengths = [(len(row.token_ids), sum(row.generated)) for row in rows]
        assert ended.content == rollout_content(contents)
        assert (ended.total_tokens, ended.generated_tokens) == tuple(map(sum, zip(*lengths, strict=True)))
        listed = (await on.events())[-2]
        assert isinstance(listed, RowsRecorded)
        assert [(row.turns, row.content) for row in listed.rows] == [
            ((0, 1), contents[0]),
            ((2, 3), contents[1]),
        ]
        assert [(row.tokens, row.generated_tokens) for row in listed.rows] == lengths


async def test_a_condensed_conversation_that_is_taken_up_has_the_same_rows(harness_stage: OpenHarnessStage) -> None:
    said = ("go on", "forget", "go on", "done")
    async with harness_stage("ls", "forgets") as on:
        await on.attempt(*said)
        whole = [event.facts() for event in await on.events() if event.KIND == "fact"]
    async with harness_stage("ls", "forgets") as on:
        await on.attempt(*said[:3])
        await on.attempt(*said[3:])
        assert [event.facts() for event in await on.events() if event.KIND == "fact"] == whole
        assert len(on.engine.played) == 4, "nothing is sampled twice"


@pytest.mark.parametrize(
    ("agent", "reason", "turns"), [({"max_turns": 2}, "turns", 2), ({"wall_clock_s": 1e-6}, "wall_clock", 1)]
)
async def test_a_bound_is_the_rollouts_end(
    harness_stage: OpenHarnessStage, agent: dict[str, object], reason: str, turns: int
) -> None:
    async with harness_stage("true", **agent) as on:
        await on.attempt(*["go on"] * 8)
        ended = await on.ended()
        assert (ended.reason, ended.turns) == (reason, turns)


async def test_a_harness_that_crashes_has_no_end_and_no_score(harness_stage: OpenHarnessStage) -> None:
    async with harness_stage("true", "crashes") as on:
        with pytest.raises(HarnessFailed, match="ended with 3"):
            await on.attempt("go on")
        assert not any(isinstance(event, RolloutEnded) for event in await on.events())
