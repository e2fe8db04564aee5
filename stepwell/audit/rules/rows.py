"""What is trained of a rollout is what was generated in it: its rows of tokens are its turns, each in one of them.

A rollout is one row unless it says which several it is. A turn's prompt holds all that its row held before, so the
lengths follow from the turns.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from stepwell.audit.finding import Finding, Tally
from stepwell.audit.record import RunRecord, StreamRecord, TurnMark
from stepwell.events import RolloutEnded, RowsRecorded
from stepwell.events.rows_recorded import RecordedRow
from stepwell.rl.samples import rollout_content

HOLDS = "each generated token of a rollout that ended is in one of its rows, which are as long as their turns make them"
UNIT = "rows"


def check(record: RunRecord, tally: Tally) -> None:
    """Applies the rule to each rollout."""
    for rollout in record.of_kind("rollout"):
        ending = rollout.first(RolloutEnded)
        for seq, listed in rollout.every(RowsRecorded):
            if ending is None or ending[1].epoch != listed.epoch:
                ended = "did not end" if ending is None else f"ended in epoch {ending[1].epoch}"
                tally.findings.append(Finding(rollout.name, seq, f"rows of epoch {listed.epoch}, but it {ended}"))
        if ending is not None and ending[1].content:  # without, nothing of it is trained
            _check_ended(rollout, *ending, tally)


def _check_ended(rollout: StreamRecord, seq: int, ended: RolloutEnded, tally: Tally) -> None:
    turns = {turn.turn: turn for turn in rollout.turns if turn.epoch == ended.epoch}
    listing = rollout.first(RowsRecorded)
    if listing is None:
        rows: Sequence[RecordedRow] = [
            RecordedRow(
                turns=tuple(sorted(turns)),
                tokens=ended.total_tokens,
                generated_tokens=ended.generated_tokens,
                content=ended.content,
            )
        ]
    else:
        seq, rows = listing[0], listing[1].rows
        _check_sums(rollout.name, seq, ended, rows, tally)
    times = Counter(number for row in rows for number in row.turns)
    for number in sorted({*turns, *times}):
        if times[number] != 1 or number not in turns:
            found = f"turn {number} is in {times[number]} rows" if number in turns else f"no turn {number} is recorded"
            tally.findings.append(Finding(rollout.name, seq, f"{found}, wanted each recorded turn in one"))
    for place, row in enumerate(rows):
        wrong = _wrong_with(row, turns)
        tally.expect(wrong is None, rollout.name, seq, f"row {place} {wrong}")


def _check_sums(name: str, seq: int, ended: RolloutEnded, rows: Sequence[RecordedRow], tally: Tally) -> None:
    contents = rollout_content([row.content for row in rows])
    found = (sum(row.tokens for row in rows), sum(row.generated_tokens for row in rows), contents)
    wanted = (ended.total_tokens, ended.generated_tokens, ended.content)
    if found != wanted:
        what = f"its rows make (tokens, generated, content) {found}, it ended with {wanted}"
        tally.findings.append(Finding(name, seq, what))


def _wrong_with(row: RecordedRow, turns: Mapping[int, TurnMark]) -> str | None:
    """How a row differs from what its turns make."""
    length = generated = 0
    for number in row.turns:
        turn = turns.get(number)
        if turn is None:
            continue  # said already
        if turn.prompt_tokens < length:
            return f"holds {length} tokens before turn {number}, whose prompt has {turn.prompt_tokens}"
        length = turn.prompt_tokens + turn.generated_tokens
        generated += turn.generated_tokens
    if (length, generated) != (row.tokens, row.generated_tokens):
        said = f"({row.tokens}, {row.generated_tokens})"
        return f"is said to have (tokens, generated) {said}, its turns make ({length}, {generated})"
    return None
