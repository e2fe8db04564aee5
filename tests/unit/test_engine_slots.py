"""The key-value rows: whatever joins, leaves and moves, a row holds the keys of its own tokens."""

import numpy as np
import psutil
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell.policy.engines.slots import CacheShape, Slots

ROWS, CONTEXT = 5, 12
SHAPE = CacheShape(layers=2, rows=ROWS, kv_heads=1, max_context=CONTEXT, head_dim=3)

CONTEXTS = st.lists(st.integers(0, 2), min_size=1, max_size=CONTEXT - 4)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("join"), CONTEXTS),
        st.tuples(st.just("grow"), st.integers(0, ROWS - 1)),
        st.tuples(st.just("leave"), st.integers(0, ROWS - 1)),
        st.tuples(st.just("compact"), st.none()),
    ),
    max_size=40,
)


def keys_of(tokens: list[int]) -> torch.Tensor:
    """Stands for the keys of a prefix: at each position a number that depends on every token so far."""
    numbers, code = [], 1
    for token in tokens:
        code = (code * 31 + token + 1) % 65_521
        numbers.append(float(code))
    return torch.tensor(numbers)


def write(slots: Slots, row: int, tokens: list[int], start: int) -> None:
    new = keys_of(tokens)[start:]
    slots.storage_L2SHTD[:, :, row, 0, start : len(tokens)] = new[:, None]
    slots.append(row, np.asarray(tokens[start:], dtype=np.int32))


@settings(deadline=None, max_examples=200)
@given(OPERATIONS)
def test_a_busy_row_always_holds_the_keys_of_its_own_tokens(operations):
    slots = Slots(SHAPE, torch.float32, torch.device("cpu"))
    busy: dict[int, list[int]] = {}
    for name, value in operations:
        if name == "join":
            claim = slots.claim(np.asarray(value, dtype=np.int32))
            assert (claim is None) == (len(busy) == ROWS)
            if claim is not None:
                assert claim.row not in busy
                assert claim.held < len(value)
                write(slots, claim.row, value, claim.held)
                busy[claim.row] = value
        elif name == "grow" and value in busy and len(busy[value]) < CONTEXT:
            longer = [*busy[value], len(busy[value]) % 3]
            write(slots, value, longer, len(longer) - 1)
            busy[value] = longer
        elif name == "leave" and value in busy:
            slots.release(value)
            del busy[value]
        elif name == "compact":
            moved = slots.compact()
            busy = {moved.get(row, row): tokens for row, tokens in busy.items()}
            assert sorted(busy) == list(range(len(busy)))
        for row, tokens in busy.items():
            held = slots.storage_L2SHTD[:, :, row, 0, : len(tokens)]
            assert torch.equal(held, keys_of(tokens)[:, None].expand_as(held))
            assert slots.lengths_S[row] == len(tokens)


def test_the_next_turn_takes_its_row_up_in_place():
    slots = Slots(SHAPE, torch.float32, torch.device("cpu"))
    first = slots.claim(np.asarray([1, 2, 3], dtype=np.int32))
    write(slots, first.row, [1, 2, 3], 0)
    slots.release(first.row)
    second = slots.claim(np.asarray([1, 2, 3, 4, 5], dtype=np.int32))
    assert (second.row, second.held) == (first.row, 3)


def test_a_shared_prompt_is_copied_and_its_holder_keeps_it():
    slots = Slots(SHAPE, torch.float32, torch.device("cpu"))
    first = slots.claim(np.asarray([1, 2, 3, 4], dtype=np.int32))
    write(slots, first.row, [1, 2, 3, 4, 9], 0)
    second = slots.claim(np.asarray([1, 2, 3, 4], dtype=np.int32))
    assert second.row != first.row
    assert second.held == 3


def test_the_least_recently_used_row_is_given_away():
    slots = Slots(SHAPE, torch.float32, torch.device("cpu"))
    rows = []
    for token in range(ROWS):
        claim = slots.claim(np.asarray([token, 7], dtype=np.int32))
        write(slots, claim.row, [token, 7], claim.held)
        rows.append(claim.row)
    for row in (rows[2], rows[0], rows[1], rows[4], rows[3]):
        slots.release(row)
    assert slots.claim(np.asarray([99, 98], dtype=np.int32)).row == rows[2]
    assert slots.longest_held(np.asarray([2, 7, 1], dtype=np.int32)) == 0


def test_after_a_reset_nothing_is_held():
    slots = Slots(SHAPE, torch.float32, torch.device("cpu"))
    claim = slots.claim(np.asarray([1, 2, 3], dtype=np.int32))
    write(slots, claim.row, [1, 2, 3], 0)
    slots.reset()
    assert slots.longest_held(np.asarray([1, 2, 3, 4], dtype=np.int32)) == 0
    assert not slots.storage_L2SHTD.any()


def test_without_reuse_a_row_holds_nothing_for_the_next_request() -> None:
    slots = Slots(SHAPE, torch.float32, torch.device("cpu"), reuse_prefixes=False)
    context = np.arange(6, dtype=np.int32)
    claim = slots.claim(context)
    assert claim is not None
    slots.append(claim.row, context)
    slots.release(claim.row)
    assert slots.longest_held(context) == 0
    again = slots.claim(context)
    assert again is not None
    assert again.held == 0


def test_a_long_context_takes_no_memory_until_it_is_written() -> None:
    shape = CacheShape(layers=4, rows=64, kv_heads=2, max_context=65_536, head_dim=32)
    before = psutil.Process().memory_info().rss
    slots = Slots(shape, torch.float32, torch.device("cpu"))
    for row in range(shape.rows):
        slots.storage_L2SHTD[:, :, row, :, :256] = 1.0
    slots.reset()
    whole = slots.storage_L2SHTD.numel() * 4
    assert psutil.Process().memory_info().rss - before < whole / 20


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_reset_overwrites_all_that_was_written(dtype: torch.dtype) -> None:
    slots = Slots(SHAPE, dtype, torch.device("cpu"))
    claim = slots.claim(np.asarray([1, 2, 0], dtype=np.int32))
    assert claim is not None
    slots.append(claim.row, np.asarray([1, 2, 0], dtype=np.int32))
    slots.storage_L2SHTD[:, :, claim.row, :, :4] = float("nan")  # the fourth by a step that failed
    slots.storage_L2SHTD[..., slots.scratch_position, :] = float("inf")
    slots.reset()
    assert not slots.storage_L2SHTD.count_nonzero()
