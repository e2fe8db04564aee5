"""The matrix of a run set: agent × base model × benchmark × repetition, and the references beside it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stepwell.contracts.trial import Role
from stepwell.ptb.seeds import sample_seed


@dataclass(frozen=True)
class TrialCell:
    """One trial."""

    role: Role
    agent: str
    """Name in the recipe; of a reference its role."""
    base_model: str
    """Organisation and name."""
    benchmark: str
    repetition: int
    """From 0."""

    @property
    def name(self) -> str:
        """In its run set: part of streams, ids and folders."""
        return f"{self.agent}.{slug(self.base_model)}.{self.benchmark}.{self.repetition}"

    def seed(self, run_set_seed: int) -> int:
        """What all seeds of the trial are drawn from: the same for all agents on a cell."""
        return sample_seed(run_set_seed, f"{self.base_model} {self.benchmark}", epoch=self.repetition)


def slug(base_model: str) -> str:
    """A base model's name as a part of others: small letters and digits, `-` for the rest."""
    return re.sub(r"[^a-z0-9]+", "-", base_model.lower()).strip("-")


@dataclass(frozen=True)
class Places:
    """Where trials are: every base model with every benchmark."""

    base_models: Sequence[str]
    """Organisation and name of each."""
    benchmarks: Sequence[str]
    """Short names."""

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Base model and benchmark of each."""
        return ((model, benchmark) for model in self.base_models for benchmark in self.benchmarks)


NOWHERE = Places((), ())


def matrix(
    agents: Sequence[str],
    places: Places,
    repetitions: int,
    references: Sequence[Role] = (),
    referred: Places = NOWHERE,
) -> tuple[TrialCell, ...]:
    """All trials, references first, then repetition by repetition: a set that is cut off has whole repetitions.

    Args:
        agents: Names.
        places: Where they are tried.
        repetitions: Of each agent at each place.
        references: `base`, `instruct`: scored once a place.
        referred: Where they are.

    Raises:
        ValueError: two cells have one name.
    """
    cells = [TrialCell(role, role, model, benchmark, 0) for role in references for model, benchmark in referred]
    cells += [
        TrialCell("agent", agent, model, benchmark, repetition)
        for repetition in range(repetitions)
        for model, benchmark in places
        for agent in agents
    ]
    named: dict[str, TrialCell] = {}
    for cell in cells:
        other = named.setdefault(cell.name, cell)
        if other != cell:
            raise ValueError(
                f"{other.agent} on {other.base_model} and {cell.agent} on {cell.base_model} would both be called "
                f"{cell.name}: rename one"
            )
    return tuple(cells)
