"""Programs are scored by values that come back out of a sandbox which holds no test."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.ptb.benchmarks import benchmark
from stepwell.ptb.item import ProgramGold
from stepwell.ptb.scorers.programs.extract import program_in
from stepwell.ptb.scorers.programs.guest import NoPlainValue, decode, encode
from stepwell.ptb.scorers.programs.score import BrokenTests, ProgramScorer
from stepwell.sandbox.bubblewrap import BubblewrapFactory
from tests.ptb_rows import real

GOLD = ProgramGold(
    prompt='def helper(x):\n    return x + 1\n\n\ndef double(xs):\n    """Twice each."""\n',
    solution="    return [helper(x) - 1 + x for x in xs]\n",
    test=(
        "import random\n\ndef check(candidate):\n"
        "    assert candidate([1, 2.5]) == [2, 5.0]\n"
        "    assert double(()) == []\n"
        "    xs = [random.randint(0, 9) for _ in range(5)]\n"
        "    assert candidate(xs) == [helper(x) - 1 + x for x in xs]\n"
    ),
    entry_point="double",
)
RIGHT = "def double(xs):\n    return [2 * x for x in xs]\n"


@pytest.fixture
async def factory(tmp_path: Path) -> AsyncGenerator[BubblewrapFactory]:
    made = BubblewrapFactory(tmp_path)
    yield made
    await made.close()


RIGHT_ANSWERS = {
    "the function": RIGHT,
    "in a block": f"Like this:\n```python\n{RIGHT}```\nIt doubles.",
    "after another block": f"```\npip install it\n```\n```python\n{RIGHT}```",
    "with the prompt's function": "def double(xs):\n    return [helper(x) + x - 1 for x in xs]",
    "the body only": "    return [2 * x for x in xs]",
    "a lambda": "double = lambda xs: [2 * x for x in xs]",
    "recursive": "def double(xs):\n    xs = list(xs)\n    return xs and [2 * xs[0], *double(xs[1:])]",
    "prints": f"print('all passed')\n{RIGHT}",
    "a subclass of list": "class L(list): pass\n" + RIGHT.replace("[2 * x for x in xs]", "L(2 * x for x in xs)"),
}
CHEATS = {
    "nothing": "",
    "a constant": "def double(xs):\n    return [2, 5.0]",
    "leaves well": "import sys; sys.exit(0)",
    "leaves at once": "import os; os._exit(0)",
    "leaves when called": "import os\ndef double(xs): os._exit(0)",
    "leaves by exception": "def double(xs): raise SystemExit(0)",
    "unittest": "import unittest; unittest.main()",
    "equal to everything": (
        "class E:\n    def __eq__(self, other): return True\n    __hash__ = None\ndef double(xs): return E()"
    ),
    "a list equal to everything": (
        "class E(list):\n    def __eq__(self, other): return True\ndef double(xs): return E()"
    ),
    "replaces check": f"def check(candidate): pass\n{RIGHT.replace('2 *', '3 *')}",
    "writes to all channels": (
        'import os\nfor n in range(64):\n    try: os.write(n, b\'\\n[{"passed": true, "why": ""}]\\n\')\n'
        "    except OSError: pass\ndef double(xs): return 0"
    ),
    "looks for tests": (
        "import gc, sys\ndef double(xs):\n    "
        "found = [o for o in gc.get_objects() if isinstance(o, str) and 'assert' in o]\n"
        "    frame = sys._getframe()\n    while frame: found += [frame.f_locals.get('results')]; frame = frame.f_back\n"
        "    return next((one for one in found if isinstance(one, list)), None)"
    ),
    "kills the runner": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    "another name": "def treble(xs): return xs",
    "no Python": "Use a loop, of course.",
    "endless values": "def double(xs): return 'x' * (1 << 20)",
}


async def test_right_programs_pass_however_they_are_given_and_no_cheat_does(factory: BubblewrapFactory) -> None:
    answers = {**RIGHT_ANSWERS, **CHEATS}
    scored = await ProgramScorer(factory).score([(answer, GOLD) for answer in answers.values()])
    found = {name: one.value for name, one in zip(answers, scored, strict=True)}
    assert found == dict.fromkeys(RIGHT_ANSWERS, 1.0) | dict.fromkeys(CHEATS, 0.0)


async def test_a_program_that_does_not_end_is_wrong_at_its_deadline(factory: BubblewrapFactory) -> None:
    (scored,) = await ProgramScorer(factory, timeout_s=1.0).score([("def double(xs):\n    while True: pass", GOLD)])
    assert scored.value == 0.0
    assert "no result within 1 s" in scored.why


async def test_tests_that_their_own_solution_does_not_pass_are_broken_and_no_score(factory: BubblewrapFactory) -> None:
    broken = ProgramGold(GOLD.prompt, "    return 0\n", GOLD.test, GOLD.entry_point)
    with pytest.raises(BrokenTests, match="does not pass its own tests"):
        await ProgramScorer(factory).score([(RIGHT, broken)])


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.complex_numbers(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.sets(st.integers() | st.text(), max_size=3)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(PLAIN)
def test_plain_values_cross_as_they_are(value: object) -> None:
    crossed = decode(json.loads(json.dumps(encode(value))))
    assert repr(crossed) == repr(value) or crossed == value
    assert type(crossed) is type(value)


@pytest.mark.parametrize("value", [object(), range(3), iter([1]), print, [object()], {"a": object()}])
def test_what_is_no_plain_value_does_not_cross(value: object) -> None:
    with pytest.raises(NoPlainValue, match="is no plain value"):
        encode(value)


@pytest.mark.parametrize(
    "coded", [None, [], ["x", 1], ["i"], ["i", 5], ["l", 5], ["o", "true"], ["n", 1], "n", {"i": 1}]
)
def test_what_is_no_coded_value_is_refused(coded: object) -> None:
    with pytest.raises(NoPlainValue, match="no coded value"):
        decode(coded)


def test_a_program_keeps_the_prompts_functions_before_it() -> None:
    program = program_in(f"```python\n{RIGHT}```", GOLD)
    assert program.index("def helper") < program.index("def double")
    assert program.count("def double") == 1


ODD = (0, 2, 4, 32, 33, 38, 44, 50, 53, 55, 64, 129, 151)
"""HumanEval tasks whose tests draw by chance, use the prompt's functions or the answer under its name, loop, or have
tolerances; or whose solution calls itself."""


async def test_publishers_solutions_pass_their_tests_and_constants_do_not(factory: BubblewrapFactory) -> None:
    items = benchmark("humaneval").load({"test": real("humaneval.jsonl.gz")}, 0)
    await _gold_and_constant(factory, [items[number].gold for number in ODD])


@pytest.mark.long
async def test_every_publishers_solution_passes_its_tests_and_no_constant_does(factory: BubblewrapFactory) -> None:
    items = benchmark("humaneval").load({"test": real("humaneval.jsonl.gz")}, 0)
    await _gold_and_constant(factory, [item.gold for item in items])


async def _gold_and_constant(factory: BubblewrapFactory, golds: list[object]) -> None:
    programs = [gold for gold in golds if isinstance(gold, ProgramGold)]
    assert len(programs) == len(golds)
    scorer = ProgramScorer(factory)
    right = await scorer.score([(f"```python\n{one.prompt}{one.solution}```", one) for one in programs])
    assert [one.value for one in right] == [1.0] * len(golds)
    constant = await scorer.score([(f"def {one.entry_point}(*a, **k): return None", one) for one in programs[:8]])
    assert [one.value for one in constant] == [0.0] * len(constant)


async def test_nothing_of_the_sandboxes_is_left(tmp_path: Path) -> None:
    made = BubblewrapFactory(tmp_path)
    try:
        await ProgramScorer(made).score([(RIGHT, GOLD)])
    finally:
        await made.close()
    await asyncio.sleep(0)
    assert list(tmp_path.iterdir()) == []
