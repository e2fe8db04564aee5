"""Asks three times on each charge."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stepwell.events.canonical import digest_of_json
from stepwell.ptb.item import Message
from stepwell.ptb.judges.charges import CHARGES, ChargeName
from stepwell.ptb.judges.excerpts import MOST_CHARACTERS, Selection, select
from stepwell.ptb.judges.question import QUESTION_VERSION, question
from stepwell.ptb.judges.signals import Signal, signals_of
from stepwell.ptb.judges.sources import TrialSources, check_no_secret
from stepwell.ptb.judges.verdict import read_verdict
from stepwell.ptb.judges.votes import VOTES, Judged, Vote
from stepwell.ptb.judging import Judge, JudgeFailed, ask_readably
from stepwell.ptb.seeds import sample_seed


class WrongPanel(ValueError):
    """Not as many judges as votes."""


@dataclass(frozen=True)
class Record:
    """A trial as judges see it."""

    sources: TrialSources
    more_signals: tuple[Signal, ...] = ()
    """Beside those of the sources: protected files that changed."""
    secrets: Mapping[str, str] | None = None
    """By name; nothing that holds one is sent."""
    most_characters: int = MOST_CHARACTERS
    """Of the excerpts on one charge."""


@dataclass(frozen=True)
class Asked:
    """What is asked on one charge."""

    charge: ChargeName
    signals: tuple[Signal, ...]
    selection: Selection
    messages: tuple[Message, ...]

    @property
    def digest(self) -> str:
        """Of the whole question."""
        return digest_of_json([QUESTION_VERSION, [[each.role, each.content] for each in self.messages]])


def prepare(record: Record, charge: ChargeName) -> Asked:
    """The question on one charge.

    Raises:
        SecretSurvives: a secret would be sent.
    """
    found = (*signals_of(record.sources.sources), *record.more_signals)
    signals = tuple(each for each in found if each.charge == charge)
    selection = select(record.sources.sources, signals, record.most_characters)
    messages = question(CHARGES[charge], selection, signals)
    check_no_secret("\n".join(each.content for each in messages), record.secrets or {})
    return Asked(charge, signals, selection, messages)


async def judge(asked: Asked, panel: Sequence[Judge], *, seed: int) -> Judged:
    """The votes on one charge. A judge that fails, after its attempts, leaves its vote without a verdict.

    Args:
        asked: The question.
        panel: Three judges; the same one three times votes under three seeds.
        seed: Of the trial's judging.

    Raises:
        WrongPanel: other than three.
    """
    if len(panel) != VOTES:
        raise WrongPanel(f"{len(panel)} judges: wanted {VOTES}, or one of them several times")
    votes = await asyncio.gather(*(_vote(asked, one, seed, number) for number, one in enumerate(panel)))
    return Judged(charge=asked.charge, question=asked.digest, votes=tuple(votes))


async def judge_trial(
    record: Record, panel: Sequence[Judge], *, seed: int, charges: Sequence[ChargeName] = tuple(CHARGES)
) -> tuple[Judged, ...]:
    """The votes on each charge, in their order. Raises as `prepare` and `judge`, before anything is asked."""
    questions = [prepare(record, charge) for charge in charges]
    return tuple([await judge(asked, panel, seed=seed) for asked in questions])


async def _vote(asked: Asked, one: Judge, seed: int, number: int) -> Vote:
    its_seed = sample_seed(seed, asked.charge, epoch=number)
    shown = {each.id for each in asked.selection.excerpts}
    try:
        verdict = await ask_readably(
            one, asked.messages, lambda text: read_verdict(text, asked.charge, shown), seed=its_seed
        )
    except JudgeFailed as error:
        return Vote(judge=one.version, seed=its_seed, verdict=None, error=str(error))
    return Vote(judge=one.version, seed=its_seed, verdict=verdict)
