"""Every verb of the command line leads somewhere."""

import argparse
from collections.abc import Iterator

import pytest

from cli.main import build_parser


def runners(parser: argparse.ArgumentParser, above: object = None) -> Iterator[tuple[str, object]]:
    """Each parser below which there is no further verb, with what runs it: its own, or its parent's."""
    run = parser.get_default("run") or above
    verbs = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not verbs:
        yield parser.prog, run
    for action in verbs:
        for below in action.choices.values():
            yield from runners(below, run)


@pytest.mark.parametrize(("verb", "run"), [pytest.param(*pair, id=pair[0]) for pair in runners(build_parser())])
def test_a_verb_has_what_runs_it(verb: str, run: object) -> None:
    assert callable(run), verb
