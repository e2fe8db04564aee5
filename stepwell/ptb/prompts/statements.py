"""What a prompt says of what is enforced, piece by piece, and whether it is so."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from stepwell.ptb.prompts.enforced import Enforced, RuleCheck

Tag = Literal[
    "internet",
    "time",
    "gpus",
    "tokens",
    "money",
    "evaluation",
    "decontamination",
    "test_data",
    "derived_data",
    "base_model",
    "evaluation_edits",
    "distillation",
    "lookup",
]
"""What a statement is about; the last six are rules."""

CHECKED: tuple[RuleCheck, ...] = get_args(RuleCheck)
BINDING: tuple[Tag, ...] = ("internet", "time", "tokens", "money")
"""What an agent must be told of where it holds: it would run into it."""


@dataclass(frozen=True)
class Claim:
    """What is said of one thing."""

    tag: Tag
    value: str
    """`internet`: its mode; `time` (hours), `gpus`, `tokens`, `money`: the number, or `none`; `evaluation`: `own` or
    `submitted`; `decontamination`: `given` or `none`; of a rule: `forbidden`."""
    hosts: tuple[str, ...] = ()
    """Of `internet`: those that are named."""


@dataclass(frozen=True)
class Statement:
    """A claim in the words of a prompt."""

    claim: Claim
    text: str
    """Stands in the prompt, letter for letter."""


@dataclass(frozen=True)
class Contradiction:
    """Where a prompt and what is enforced disagree."""

    kind: Literal["false", "unsaid", "unchecked"]
    """`false`: it says what is not so; `unsaid`: it is silent on what is enforced; `unchecked`: it states a rule whose
    breach nobody looks for."""
    tag: Tag
    said: str
    """Empty if nothing is."""
    enforced: str

    @property
    def misleads(self) -> bool:
        """Whether an agent that believes the prompt is wronged by it."""
        return self.kind != "unchecked"

    def __str__(self) -> str:
        said = f"says {self.said!r}" if self.said else "says nothing"
        return f"{self.tag}: the prompt {said}, and {self.enforced!r} is enforced"


def honest_claims(enforced: Enforced, rules: Iterable[RuleCheck] = ()) -> tuple[Claim, ...]:
    """What a prompt says that says what is so.

    Args:
        enforced: What holds.
        rules: That it states beside those that are checked.
    """
    facts = [
        Claim("internet", enforced.internet, enforced.hosts),
        Claim("time", _number(enforced.hours)),
        Claim("gpus", str(enforced.gpus)),
        Claim("tokens", _number(enforced.tokens)),
        Claim("money", _number(enforced.money)),
        Claim("evaluation", enforced.evaluation),
        Claim("decontamination", "given" if enforced.decontamination else "none"),
    ]
    stated = {*enforced.checks, *rules}
    return (*facts, *(Claim(rule, "forbidden") for rule in CHECKED if rule in stated))


def check_statements(statements: Sequence[Statement], enforced: Enforced) -> list[Contradiction]:
    """Where the statements of a prompt and what is enforced disagree, in the order of tags.

    A limit that is none needs no word, nor does what only helps the agent.
    """
    said = {statement.claim.tag: statement.claim for statement in statements}
    found: list[Contradiction] = []
    holds = {claim.tag: claim for claim in honest_claims(enforced)}
    for tag in get_args(Tag):
        claim, held = said.get(tag), holds.get(tag)
        if tag in CHECKED:
            if claim is None and held is not None:
                found.append(Contradiction("unsaid", tag, "", "its breach is looked for"))
            elif claim is not None and held is None:
                found.append(Contradiction("unchecked", tag, claim.value, "no check"))
        elif held is not None and claim is None:
            if tag in BINDING and (held.value != "none" or tag == "internet"):
                found.append(Contradiction("unsaid", tag, "", _shown(held)))
        elif held is not None and claim is not None and not _agree(claim, held):
            found.append(Contradiction("false", tag, _shown(claim), _shown(held)))
    return found


def _agree(claim: Claim, held: Claim) -> bool:
    if claim.tag == "internet":
        return claim.value == held.value and set(claim.hosts) == set(held.hosts)
    return claim.value == held.value


def _shown(claim: Claim) -> str:
    return f"{claim.value}: {', '.join(claim.hosts)}" if claim.hosts else claim.value


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:g}" if value < 1e6 else str(int(value))
