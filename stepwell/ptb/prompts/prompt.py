"""The prompt of a trial, by the wording in `wording.toml`."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from stepwell.events.canonical import digest_of_json
from stepwell.nearest_names import did_you_mean
from stepwell.ptb.prompts.enforced import Enforced, RuleCheck
from stepwell.ptb.prompts.statements import (
    Claim,
    Contradiction,
    Statement,
    check_statements,
    honest_claims,
)


class PromptContradicts(ValueError):
    """A prompt says what is not so, or is silent on what is enforced."""


class UnknownRules(ValueError):
    """There is no wording of that version."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    text: str = ""
    """Said whatever holds."""
    tags: tuple[str, ...] = ()
    """Whose statements stand here."""


class _Wording(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    versions: dict[str, tuple[RuleCheck, ...]]
    """Rules that each states, whatever is checked."""
    sections: Annotated[tuple[_Section, ...], Field(min_length=1)]
    statements: dict[str, dict[str, str]]
    """Sentences by tag and value; `else` for any other value."""
    correction: str
    go_on: str


@cache
def _wording() -> _Wording:
    return _Wording.model_validate(tomllib.loads(Path(__file__).with_name("wording.toml").read_text("utf-8")))


RULES: tuple[str, ...] = ("v1.0", "v1.1")
"""Versions of the rules that there is a wording of."""


@dataclass(frozen=True)
class Task:
    """What an agent has before it."""

    base_model: str
    """Organisation and name."""
    benchmark: str
    """As the agent is told it."""
    base_at: str = "/models/base"
    """Where the base model is, inside."""
    submission: str = "final_model"
    """Folder of the result, in the work folder."""
    evaluate: str = "python evaluate.py"
    """Command that measures a model on the benchmark."""
    decontamination: str = "python /benchmark/contamination_check.py FOLDER"
    """Command that looks for the benchmark's rows, where there is one."""
    judged: bool = False
    """Whether the benchmark's own evaluation asks a judge."""


@dataclass(frozen=True)
class Prompt:
    """What all agents on a cell are told."""

    shared: str
    """The same for all of them."""
    statements: tuple[Statement, ...]
    """What it says of what is enforced."""
    contradictions: tuple[Contradiction, ...] = ()
    """What does not hold of it, where that was let pass, or was put right in it."""
    addition: str = ""
    """What one scaffold's agents are told beyond it."""

    @property
    def text(self) -> str:
        """Whole."""
        return "\n\n".join([self.shared, self.addition.strip()]) if self.addition.strip() else self.shared

    @property
    def digest(self) -> str:
        """Of what all are told: two agents with another digest were not asked the same."""
        return digest_of_json(["prompt", self.shared])

    def for_scaffold(self, addition: str) -> "Prompt":
        """With what a scaffold's agents are told beyond."""
        return replace(self, addition=addition)

    @property
    def said(self) -> tuple[str, ...]:
        """For a record: each claim, and each contradiction."""
        claims = [f"{each.claim.tag}: {', '.join([each.claim.value, *each.claim.hosts])}" for each in self.statements]
        return (*claims, *(f"{each.kind}: {each}" for each in self.contradictions))


def trial_prompt(task: Task, enforced: Enforced, rules: str = "v1.1", claims: Sequence[Claim] | None = None) -> Prompt:
    """What an agent is told.

    Args:
        task: What is asked.
        enforced: What holds.
        rules: Version of the rules, one of `RULES`: what is forbidden, whether or not it is checked.
        claims: What the prompt is to say; what is enforced, by default. `settled` holds them against it.

    Raises:
        UnknownRules: there is no such version.
    """
    wording = _wording()
    if rules not in RULES:
        hint = did_you_mean(rules, RULES)
        raise UnknownRules(f"no rules {rules!r}; there are {', '.join(RULES)}" + (f"; {hint}" if hint else ""))
    if claims is None:
        claims = honest_claims(enforced, wording.versions[rules])
    names = {
        "base_model": task.base_model,
        "benchmark": task.benchmark,
        "base_at": task.base_at,
        "submission": task.submission,
        "evaluate": task.evaluate,
        "decontamination": task.decontamination,
        "exception": wording.statements["exception"]["judged"] if task.judged else "",
    }
    statements = {claim.tag: Statement(claim, _sentence(wording, claim, names)) for claim in claims}
    blocks: list[str] = []
    for section in wording.sections:
        lines = [section.text.strip().format(**names)] if section.text else []
        lines += [f"- {statements[tag].text}" for tag in statements if tag in section.tags and statements[tag].text]
        if lines:
            blocks.append("\n".join([f"## {section.title}", *lines]))
    told = tuple(each for each in statements.values() if each.text)
    return Prompt("\n\n".join(blocks), told)


def settled(prompt: Prompt, enforced: Enforced, contradictions: Literal["refuse", "say"] = "refuse") -> Prompt:
    """A prompt that misleads nobody.

    Args:
        prompt: Of `trial_prompt`.
        enforced: What holds.
        contradictions: `refuse` one that misleads, or `say` in it what holds; either way it records what was found.

    Raises:
        PromptContradicts: it misleads, and that is refused.
    """
    found = check_statements(prompt.statements, enforced)
    misleading = [each for each in found if each.misleads]
    if not misleading:
        return replace(prompt, contradictions=tuple(found))
    if contradictions == "refuse":
        raise PromptContradicts(
            "\n  ".join(["the prompt and what is enforced disagree:", *map(str, misleading)])
            + '\nSay what is so, enforce what is said, or let it be said that they differ (contradictions = "say")'
        )
    lines = [_correction(each) for each in misleading]
    text = "\n".join([_wording().correction.strip(), *(f"- {line}" for line in lines)])
    return replace(prompt, shared=f"{prompt.shared}\n\n{text}", contradictions=tuple(found))


def go_on_text(hours: str = "{hours}", minutes: str = "{minutes}") -> str:
    """What an agent that stopped early is told. By default with places for the time that remains."""
    return _wording().go_on.strip().replace("{hours}", hours).replace("{minutes}", minutes)


def _sentence(wording: _Wording, claim: Claim, names: Mapping[str, str]) -> str:
    by_value = wording.statements[claim.tag]
    template = by_value.get(claim.value, by_value.get("else", ""))
    span = _span(float(claim.value)) if claim.tag == "time" else ""
    text = template.strip().format(**names, value=claim.value, span=span, hosts=", ".join(claim.hosts))
    return " ".join(text.split())


def _span(hours: float) -> str:
    number, unit = (hours, "hour") if hours >= 1 else (hours * 60, "minute")
    return f"{number:g} {unit}" if number == 1 else f"{number:.4g} {unit}s"


def _correction(contradiction: Contradiction) -> str:
    said = f"not {contradiction.said}" if contradiction.said else "not said above"
    return f"{contradiction.tag.replace('_', ' ')}: {contradiction.enforced} ({said})"
