"""A prompt group with its rollouts and verdicts."""

import zlib

from stepwell.agent.protocol import Action
from stepwell.agent.turn import TurnPayload
from stepwell.events import (
    AttemptOpened,
    GroupClosed,
    GroupOpened,
    RolloutEnded,
    RolloutFailed,
    RolloutGraded,
    RowsRecorded,
    TurnRecorded,
    VerdictReached,
)
from stepwell.events.canonical import canonical_json
from stepwell.events.children import facts_of_children
from stepwell.events.group_closed import Fate
from stepwell.events.streams import prompt_stream, rollout_stream, verdict_stream
from stepwell.rl.rows import recorded_rows
from stepwell.rl.samples import rollout_content
from tests.book import Book
from tests.run_plan import SAMPLES
from tests.told import told

ENGINE = "e1"
TREE = "7" * 64
TEST = "tests/test_it.py::test_works"
"""The only hidden test of every task."""
FAILURES = {Fate.QUARANTINED: "data", Fate.SKIPPED: "operator"}
CAUSES = {Fate.QUARANTINED: "the task is broken", Fate.SKIPPED: "it is not wanted"}


async def write_group(
    book: Book,
    scope: str,
    prompt: int,
    *,
    version: int,
    task: str,
    fate: Fate,
    rows: int = 1,
    all_end: bool = False,
) -> None:
    """A group of three rollouts: of a good one the first is solved; of a trained one with index 1 the last fails,
    unless all come to an end."""
    stream = prompt_stream(book.run, scope, prompt)
    await book.append(stream, told(GroupOpened, task=task, version=version, samples=SAMPLES))
    for sample in range(SAMPLES):
        is_unlucky = fate is Fate.TRAINED and prompt == 1 and sample == SAMPLES - 1 and not all_end
        await _rollout(book, scope, prompt, sample, version, fate, rows, is_unlucky=is_unlucky)
    names = [rollout_stream(book.run, scope, prompt, sample) for sample in range(SAMPLES)]
    children = [book.head(name) for name in names if name in book.events]
    graded = [book.first(name, RolloutGraded) for name in names]
    closed = told(
        GroupClosed,
        fate=fate,
        scores=[event.score if event else None for event in graded],
        children=children,
        rollout_facts=facts_of_children(children),
        cause=CAUSES.get(fate, ""),
    )
    await book.append(stream, closed)


def turn_payload(scope: str, prompt: int, sample: int, row: int = 0) -> TurnPayload:
    """The only turn of a rollout, or of one of its rows: ten tokens of prompt, five generated."""
    first = zlib.crc32(f"{scope}/{prompt}/{sample}".encode()) % 100_000 + 10 * row
    return TurnPayload(
        delta_ids=tuple(range(first, first + 10)),
        token_ids=tuple(range(5)),
        logprobs=(-0.5,) * 5,
        finish_reason="stop",
        action=Action(tool="finish", arguments={}),
        observation="",
        finished=True,
        segment=row,
    )


async def _rollout(
    book: Book, scope: str, prompt: int, sample: int, version: int, fate: Fate, count: int, *, is_unlucky: bool
) -> None:
    """One turn for each row."""
    stream = rollout_stream(book.run, scope, prompt, sample)
    payloads = [turn_payload(scope, prompt, sample, row) for row in range(count)]
    turns = [
        told(
            TurnRecorded,
            turn=turn,
            payload=await book.put(payload.blob()),
            version=version,
            prompt_tokens=10,
            generated_tokens=5,
            tree=TREE,
            engine=ENGINE,
        )
        for turn, payload in enumerate(payloads)
    ]
    await book.append(stream, told(AttemptOpened), *turns)
    if is_unlucky or fate in FAILURES:
        await book.append(
            stream, told(RolloutFailed, failure=FAILURES.get(fate, "infra"), cause=CAUSES.get(fate, "no luck"))
        )
        return
    key, score = f"{book.run}-{scope}-{prompt}-{sample}", float(sample == 0)
    rows = recorded_rows(payloads)
    ended = told(
        RolloutEnded,
        turns=count,
        generated_tokens=5 * count,
        total_tokens=15 * count,
        content=rollout_content([row.content for row in rows]),
        changed=await book.put(b"{}"),
        tree=TREE,
        verdict_key=key,
    )
    await book.append(stream, *([RowsRecorded(epoch=0, rows=rows)] if count > 1 else []), ended)
    outcomes = {TEST: "passed" if score else "failed"}
    report = await book.put(canonical_json({"value": score, "outcomes": outcomes, "report": "as it is"}))
    await book.append(verdict_stream(key), told(VerdictReached, tree=TREE, score=score, report=report))
    head = book.head(verdict_stream(key)).head
    await book.append(stream, told(RolloutGraded, verdict_key=key, score=score, verdict_head=head))
