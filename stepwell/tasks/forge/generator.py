"""One forged task from (seed, split, index): the same on every machine, whatever was forged before it."""

import hashlib
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from stepwell.tasks.forge import names
from stepwell.tasks.forge.arguments import Argument, draw_arguments
from stepwell.tasks.forge.families import Defect, Family, Function, families
from stepwell.tasks.forge.trusted import TrustedTree, describe
from stepwell.tasks.task import Split, Task

HIDDEN_PATH = "tests/test_hidden.py"
VISIBLE_PATH = "tests/test_visible.py"
PROTECTED = (
    *(VISIBLE_PATH, HIDDEN_PATH, "tests/__init__.py", "tests/conftest.py", "conftest.py", "pytest.ini"),
    *("pyproject.toml", "setup.cfg", "tox.ini", "sitecustomize.py", "usercustomize.py"),
)

_LAYOUTS = ((1,), (1,), (1,), (1,), (2,), (2,), (1, 1), (1, 1), (2, 1), (1, 1, 1))
"""Functions in each module, drawn evenly: four tasks in ten have one function, four two, two three."""
_ISSUES = (
    "{call} gives {got}, expected {want}.",
    "{call} should be {want} but is {got}.",
    "Wrong result: {call} returns {got} instead of {want}.",
)
_CANDIDATES = 24
_TARGET_CALLS = 8
_OTHER_CALLS = 3
_LONGEST_REPR = 24


class Call(NamedTuple):
    """A call of one forged function, with what it should give."""

    function: str
    arguments: tuple[Argument, ...]
    want: str

    @property
    def text(self) -> str:
        """The call as Python."""
        return f"{self.function}({', '.join(map(repr, self.arguments))})"


class _Redraw(Exception):
    """These draws make no good task; the next ones may."""


def forged_task(seed: int, split: Split, index: int) -> Task:
    """The task at one place of a split. About a millisecond; pure."""
    every = families(heldout=split == "heldout_family")
    layout = _random(seed, split, index, "layout").choice(_LAYOUTS)
    for attempt in range(1000):
        random = _random(seed, split, index, attempt)
        # A family whose variants all fall in other splits gives way to the next one.
        target = every[(index + attempt // 100) % len(every)]
        try:
            return _draw_task(f"{split}-{index:05d}", split, target, layout, random)
        except _Redraw:
            continue
    raise RuntimeError(f"no task after 1000 draws at {split}[{index}] of seed {seed}; a family has no usable variants")


def _random(*key: object) -> Random:
    return Random(int.from_bytes(hashlib.sha256("/".join(map(str, key)).encode()).digest()))


def _draw_task(label: str, split: Split, target: Family, layout: tuple[int, ...], random: Random) -> Task:
    count = sum(layout)
    function_names = names.function_names(split, count, random)
    place = random.randrange(count)
    others = [family for family in families(heldout=False) if family is not target]
    chosen = random.sample(others, count)
    chosen[place] = target
    functions = [_choose(family, name, random) for family, name in zip(chosen, function_names, strict=True)]
    broken = functions[place]
    defect = random.choice(broken.defects())
    # A defective function belongs to one split, whatever it is called.
    if not names.belongs(broken.source(defect, name="f"), split):
        raise _Redraw
    example, hidden = _calls(broken, defect, random)
    for function in functions:
        if function is not broken:
            hidden += _other_calls(function, random)
    modules = sorted(random.sample(names.MODULES, len(layout)))
    homes = [module for module, size in zip(modules, layout, strict=True) for _ in range(size)]
    good = _modules(homes, [function.source() for function in functions])
    bad = _modules(homes, [function.source(defect if function is broken else None) for function in functions])
    module_of = {function.name: home for function, home in zip(functions, homes, strict=True)}
    got = _result(broken.source(defect), example)
    issue = random.choice(_ISSUES).format(call=example.text, got=got, want=example.want)
    message = f"{example.text} is not {example.want}"
    visible = _test_file(module_of, [example], message)
    hidden_file = _test_file(module_of, hidden, None)
    files = {"README.md": _readme(modules), **bad, VISIBLE_PATH: visible}
    home = f"{module_of[broken.name]}.py"
    return Task(
        id=f"forged/{target.name}/{label}",
        family=target.name,
        split=split,
        difficulty=count + target.level - 1,
        issue=issue,
        files=files,
        hidden={HIDDEN_PATH: hidden_file},
        gold={home: good[home]},
        grader="calls",
        protected=PROTECTED,
        expected=tuple(f"{HIDDEN_PATH}::test_{number}" for number in range(len(hidden))),
        timeout_s=10.0,
    )


def _choose(family: Family, name: str, random: Random) -> Function:
    words: dict[str, str] = {}
    for letter, kind in zip("abc", family.takes, strict=False):
        free = [word for word in names.ARGUMENTS[kind] if word not in words.values()]
        words[letter] = random.choice(free)
    k, j = random.sample(range(2, 10), 2)
    words |= {"k": str(k), "j": str(j)}
    words |= {"v": random.choice(names.LOOP_VARIABLES), "o": random.choice(names.ACCUMULATORS)}
    return Function(family=family, name=name, words=words, doc=random.randrange(len(family.docs)))


def _candidates(function: Function, count: int, random: Random) -> list[Call]:
    """Distinct calls that the right function answers, with its answers."""
    constants = (int(function.words["k"]), int(function.words["j"]))
    run = _callable(function.source(), function.name)
    calls: dict[str, Call] = {}
    for _ in range(count):
        arguments = draw_arguments(function.family.takes, constants, random)
        call = Call(function.name, arguments, _answer(run, arguments))
        if "Error" not in call.want and len(call.want) <= _LONGEST_REPR:
            calls[call.text] = call
    return list(calls.values())


def _calls(function: Function, defect: Defect, random: Random) -> tuple[Call, list[Call]]:
    """An example that shows the defect, and hidden calls: at least two show it, and every other single defect that
    can be told from the right function is shown by one as well."""
    candidates = _candidates(function, _CANDIDATES, random)
    shown = {other: _shown_by(function, other, candidates) for other in function.defects()}
    failing = shown[defect]
    if len(failing) < 3:
        raise _Redraw
    example = min(failing, key=lambda call: (len(call.text) + len(call.want), call.text))
    rest = [call for call in candidates if call is not example]
    wanted = {call.text for call in [call for call in failing if call is not example][:2]}
    for calls in shown.values():
        telling = [call.text for call in calls if call is not example]
        if wanted.isdisjoint(telling):
            wanted |= set(telling[:1])
    wanted |= {call.text for call in rest[: max(0, _TARGET_CALLS - len(wanted))]}
    return example, [call for call in rest if call.text in wanted]


def _other_calls(function: Function, random: Random) -> list[Call]:
    return _candidates(function, 2 * _OTHER_CALLS, random)[:_OTHER_CALLS]


def _shown_by(function: Function, defect: Defect, calls: Sequence[Call]) -> list[Call]:
    run = _callable(function.source(defect), function.name)
    return [call for call in calls if _answer(run, call.arguments) != call.want]


def _callable(source: str, name: str) -> object:
    return TrustedTree({"f.py": source}).functions("f.py")[name]


def _answer(run: object, arguments: tuple[Argument, ...]) -> str:
    assert callable(run)
    try:
        return repr(run(*[list(value) if isinstance(value, list) else value for value in arguments]))
    except Exception as error:
        return describe(error).partition(":")[0]


def _result(source: str, call: Call) -> str:
    return _answer(_callable(source, call.function), call.arguments)


def _modules(homes: Sequence[str], sources: Sequence[str]) -> dict[str, str]:
    texts: dict[str, list[str]] = {}
    for home, source in zip(homes, sources, strict=True):
        texts.setdefault(f"{home}.py", []).append(source)
    return {path: "\n\n".join(parts) for path, parts in texts.items()}


def _test_file(module_of: dict[str, str], calls: Sequence[Call], message: str | None) -> str:
    used = sorted({(module_of[call.function], call.function) for call in calls})
    imports = "".join(f"from {module} import {function}\n" for module, function in used)
    tail = f", {message!r}" if message else ""
    tests = "".join(
        f"\n\ndef test_{number}():\n    assert {call.text} == {call.want}{tail}\n" for number, call in enumerate(calls)
    )
    return imports + tests


def _readme(modules: Sequence[str]) -> str:
    listed = "".join(f"- `{module}.py`\n" for module in modules)
    return f"# Small functions\n\n{listed}\nThe tests are in `tests/`; run them with `python -m pytest`.\n"
