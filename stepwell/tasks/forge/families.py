"""Families of forged functions, read from `families.toml`."""

import re
import tomllib
from functools import cache
from importlib import resources
from string import Template

from pydantic import BaseModel, ConfigDict, Field

_SITE = re.compile(r"@\{([^}]*)\}")


class Site(BaseModel):
    """A place in a family's body where a defect can be put."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    options: tuple[str, ...] = Field(min_length=2)
    """Texts with placeholders: the right one first, then the wrong ones."""


class Family(BaseModel):
    """What varies together: one function, its wordings, and the places where it can be wrong."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """Unique among families."""
    takes: str = Field(pattern="^[ipxs]{1,3}$")
    """A letter an argument: `i` integer, `p` positive integer, `x` list of integers, `s` word."""
    level: int = Field(ge=1, le=2)
    """1: one expression; 2: several statements."""
    docs: tuple[str, ...] = Field(min_length=1)
    """Wordings of the docstring, with placeholders."""
    body: str
    """Statements with placeholders and sites."""
    heldout: bool = False
    """Never used for training."""

    def parts(self) -> list[str | Site]:
        """The body cut at its sites, in order."""
        body = self.body.strip("\n")
        parts: list[str | Site] = []
        end = 0
        for match in _SITE.finditer(body):
            parts += [body[end : match.start()], Site(options=tuple(match[1].split("|")))]
            end = match.end()
        return [*parts, body[end:]]

    def sites(self) -> list[Site]:
        """The places where a defect can be put, in order."""
        return [part for part in self.parts() if isinstance(part, Site)]


class Defect(BaseModel):
    """One wrong option at one site."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    site: int
    """Index among the family's sites."""
    option: int
    """Index among the site's options, from 1."""


class Function(BaseModel):
    """A family with everything chosen: what one forged function says and does."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    family: Family
    name: str
    """The function's name."""
    words: dict[str, str]
    """Placeholder to text: `a`, `b`, `c` arguments, `k`, `j` constants, `v`, `o` variables."""
    doc: int
    """Index of the docstring's wording."""

    def source(self, defect: Defect | None = None, *, name: str | None = None) -> str:
        """Python source, ending in a newline; with `defect`, the defective one; under another name, if one is given."""
        body, site = "", -1
        for part in self.family.parts():
            if isinstance(part, str):
                body += part
                continue
            site += 1
            body += part.options[defect.option if defect is not None and defect.site == site else 0]
        arguments = ", ".join(self.words[letter] for letter in "abc"[: len(self.family.takes)])
        lines = [f'"""{self.family.docs[self.doc]}"""', *body.split("\n")]
        text = "".join(f"    {Template(line).substitute(self.words)}\n" for line in lines)
        return f"def {name or self.name}({arguments}):\n{text}"

    def defects(self) -> list[Defect]:
        """Every defect that can be put in."""
        return [
            Defect(site=index, option=option)
            for index, site in enumerate(self.family.sites())
            for option in range(1, len(site.options))
        ]


@cache
def families(*, heldout: bool) -> tuple[Family, ...]:
    """The training families, or the held-out ones, in the order of the file."""
    text = resources.files("stepwell.tasks.forge").joinpath("families.toml").read_text("utf-8")
    every = [Family.model_validate(entry) for entry in tomllib.loads(text)["family"]]
    return tuple(family for family in every if family.heldout == heldout)
