"""What rows are called on a page: as shortly as tells them apart."""

from collections.abc import Mapping, Sequence

from stepwell.ptb.leaderboard.board import Row
from stepwell.ptb.leaderboard.records import Configuration

Named = Sequence[tuple[str, Row]]
"""Rows with their names."""


def named(rows: Sequence[Row], names: Mapping[str, str]) -> Named:
    """Some of the rows, with the names that they have among all."""
    return [(names[row.configuration.digest], row) for row in rows]


def row_names(rows: Sequence[Row]) -> dict[str, str]:
    """By configuration's digest: the agent; where several rows have one agent, with what they differ in."""
    all_of = [row.configuration for row in rows]
    return {of.digest: _name(of, all_of) for of in all_of}


def scaffold_of(of: Configuration) -> str:
    """Its scaffold in words."""
    return f"{of.scaffold} {of.scaffold_version}" + (", told to go on" if of.reprompt else "")


def limits_of(of: Configuration) -> str:
    """Its limits in words."""
    limits = [f"{of.hours:g} h", "1 GPU" if of.gpus == 1 else f"{of.gpus} GPUs"]
    limits += [f"{of.tokens:,} tokens"] if of.tokens is not None else []
    limits += [f"${of.money:g}"] if of.money is not None else []
    return ", ".join(limits)


def _name(of: Configuration, all_of: Sequence[Configuration]) -> str:
    alike = [_words(each) for each in all_of if each.agent == of.agent]
    differing = [words for place, words in enumerate(_words(of)) if len({each[place] for each in alike}) > 1]
    return " ".join([of.agent, *filter(None, differing)])


def _words(of: Configuration) -> tuple[str, ...]:
    """What two configurations of one agent may differ in, the likeliest first."""
    return (
        of.effort or "",
        f"{of.hours:g} h",
        f"{of.gpus} GPUs",
        scaffold_of(of),
        of.model,
        "" if of.tokens is None else f"{of.tokens:,} tokens",
        "" if of.money is None else f"${of.money:g}",
    )
